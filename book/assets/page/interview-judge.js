/* Judging in the practice page: estimates with units, and the order of checks in a diagnosis.
 *
 * The same steps as `cpcore.interview.judge` and `cpcore.interview.diagnosis`; tests run both on
 * the same answers. All tables come from the data file that the build writes. No page element is
 * touched here.
 */
(function (home) {
  "use strict";

  var NUMBER = /^([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?|[-+]?\.\d+)\s*(.*)$/i;

  function has(table, key) {
    return Object.prototype.hasOwnProperty.call(table, key);
  }

  function expected(argument, wanted, received) {
    return { error: argument + ": expected " + wanted + ", received " + received };
  }

  /* The unit that a word means, or null. */
  function unitOf(word, tables) {
    if (has(tables.spellings, word)) word = tables.spellings[word];
    if (has(tables.units, word)) return word;
    if (tables.counts.indexOf(word.toLowerCase()) >= 0) return word.toLowerCase();
    return tables.counts.indexOf(word + "s") >= 0 ? word + "s" : null;
  }

  /* {value, unit} of "number unit", or {error}. */
  function read(text, tables) {
    var clean = text.split(/\s+/).filter(Boolean).join(" ");
    var found = NUMBER.exec(clean);
    if (!found) return expected("answer", "a number and a unit, such as 64 MiB", "'" + text + "'");
    var number = Number(found[1].replace(/,/g, ""));
    var rest = found[2].trim();
    if (!rest) {
      return expected("answer", "a unit after the number, such as MiB or tokens", "'" + text + "'");
    }
    if (/^,\d/.test(rest)) {
      var point = "a point before decimals, commas between thousands";
      return expected("answer", point, "'" + text + "'");
    }
    var unit = unitOf(rest, tables);
    if (unit) return { value: number * tables.units[unit][1], unit: unit };
    var power = tables.powers[rest[0].replace("K", "k")];
    unit = unitOf(rest.slice(1).trim(), tables);
    if (power && tables.counts.indexOf(unit) >= 0) return { value: number * power, unit: unit };
    return expected("answer", "a unit such as MiB, GB/s, ms, %, x or tokens", "'" + rest + "'");
  }

  function distance(a, b) {
    return Math.max(a / b, b / a);
  }

  function binaryNote(off, unit, tables) {
    var note = "";
    Object.keys(tables.binary).forEach(function (decimal) {
      var binary = tables.binary[decimal];
      var ratio = tables.units[binary][1] / tables.units[decimal][1];
      if (ratio <= 1.03) return;
      var said = "1 " + binary + " is " + ratio.toFixed(3) + " " + decimal + ".";
      if (unit === decimal && Math.abs(off * ratio - 1) < 0.004) {
        note = " These digits belong to " + binary + ": " + said;
      }
      if (unit === binary && Math.abs(off / ratio - 1) < 0.004) {
        note = " These digits belong to " + decimal + ": " + said;
      }
    });
    return note;
  }

  /* {right, text} for an answer to a prepared drill. */
  function judge(text, drill, tables) {
    var answer = read(text, tables);
    if (answer.error) return { right: false, text: "Not read: " + answer.error + "." };
    var wanted = tables.units[drill.unit][0];
    var found = tables.units[answer.unit][0];
    if (found !== wanted) {
      var said = answer.unit + " measure " + found + ", asked is " + wanted + ", in ";
      return { right: false, text: said + drill.unit + "." };
    }
    if (answer.value <= 0) return { right: false, text: "The answer is a number above 0." };
    var off = answer.value / drill.value;
    var times = Math.max(off, 1 / off);
    if (times <= drill.factor) {
      var note = binaryNote(off, answer.unit, tables);
      return { right: true, text: "Right: " + drill.right + "." + note };
    }
    var slips = drill.slips.concat(tables.always[wanted] || []);
    var nearest = slips.reduce(function (least, slip) {
      return Math.min(least, distance(off, slip[0]));
    }, Infinity);
    if (nearest <= Math.min(tables.near, drill.factor)) {
      var reasons = slips.filter(function (slip) {
        return distance(off, slip[0]) <= tables.tied * nearest;
      }).map(function (slip) {
        return slip[1];
      });
      return { right: false, text: "Not yet. " + reasons.join(" Or: ") };
    }
    var shown = times > tables.far ? "over a million"
      : times >= 100 ? Math.round(times).toLocaleString("en-US") : times.toFixed(1);
    var side = off > 1 ? "more" : "less";
    return { right: false, text: "Not yet: " + shown + " times " + side + " than it should be." };
  }

  function places(one, order) {
    return order.map(function (name) {
      return one.checks
        .map(function (check) {
          return check[0];
        })
        .indexOf(name);
    });
  }

  /* Causes that agree with everything these checks have shown. */
  function left(one, order) {
    var at = places(one, order);
    return Object.keys(one.seen).filter(function (cause) {
      return at.every(function (place) {
        return one.seen[cause][place] === one.seen[one.truth][place];
      });
    });
  }

  /* Whether a check can tell these causes apart at all. */
  function tells(one, check, causes) {
    var place = places(one, [check])[0];
    return causes.some(function (cause) {
      return one.seen[cause][place] !== one.seen[causes[0]][place];
    });
  }

  /* {points, text} for naming a cause after checks in this order. */
  function grade(one, order, cause) {
    var minutes = {};
    one.checks.forEach(function (check) {
      minutes[check[0]] = check[1];
    });
    var remaining = left(one, order);
    var wasted = order.filter(function (check, i) {
      return !tells(one, check, left(one, order.slice(0, i)));
    });
    var spent = order.reduce(function (sum, check) {
      return sum + minutes[check];
    }, 0);
    var proved = remaining.length === 1;
    var points = cause !== one.truth ? 0 : !proved ? 1 : spent <= 1.5 * one.best ? 3 : 2;
    var said = ["Wrong", "Right, not yet proved", "Right and proved, not the shortest way", "Right"];
    var text = said[points] + ": " + one.truth + ". " + spent + " minutes; " + one.best;
    text += " would have done.";
    if (wasted.length) text += " Told nothing new: " + wasted.join(", ") + ".";
    if (remaining.length > 1) text += " Still possible: " + remaining.join(", ") + ".";
    return { points: points, text: text };
  }

  var made = { read: read, judge: judge, left: left, grade: grade };
  if (home) home.cpJudge = made;
  else module.exports = made; // under Node, in a test
})(typeof window === "object" ? window : null);
