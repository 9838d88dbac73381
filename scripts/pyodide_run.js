/* Runs the Python text of its input in Pyodide, as a page would start it, under Node.
 *
 * Arguments: the folder that holds Pyodide and its wheels, and a folder that Python sees as /host.
 */
"use strict";

const fs = require("fs");
const path = require("path");

async function main(pyodideFolder, hostFolder) {
  const { loadPyodide } = require(path.join(pyodideFolder, "pyodide.js"));
  const quiet = function () {};
  const options = { indexURL: pyodideFolder + path.sep, packages: ["numpy"], stdout: quiet };
  const pyodide = await loadPyodide(options);
  pyodide.FS.mkdir("/host");
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: hostFolder }, "/host");
  pyodide.runPython(fs.readFileSync(0, "utf8"));
}

function ended() {
  process.exitCode = 0;
}

process.exitCode = 1; // also if Pyodide never comes so far
main(...process.argv.slice(2)).then(ended, function (error) {
  // Without this Node prints the line that threw, and a line of Pyodide has a megabyte.
  console.error(String((error && error.message) || error).trim());
  process.exit(1);
});
