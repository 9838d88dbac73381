/* What the theme does by handlers inside its HTML, which the content policy forbids. */
(function () {
  "use strict";

  var actions = {
    "full-screen": function () {
      window.toggleFullScreen(); // the theme's
    },
    print: function () {
      window.print();
    },
  };

  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-cp-action]");
    if (button) actions[button.dataset.cpAction]();
  });
})();
