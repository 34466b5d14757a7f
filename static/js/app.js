// Entry of every page. Each module works on attributes it finds, now and after an htmx swap, and does nothing without them.
import "./shell.js";
import "./palette.js";
import "./keys.js";
import "./rows.js";
import "./filters.js";
import "./time.js";
import "./live.js";
import "./tree.js";
import "./requests.js";
