/* Regular expressions of Python, so that the rules of `lib.data` are written once: tables and patterns come from there.
 *
 * Letters, digits, word characters and white space are Unicode's, as in Python's `re`. Places are those of JavaScript's
 * strings, where a character outside the first plane counts twice.
 */

const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const KINDS = {
  w: "[\\p{L}\\p{N}_]", W: "[^\\p{L}\\p{N}_]", d: "\\p{Nd}", D: "\\P{Nd}", s: `[${SPACE}]`, S: `[^${SPACE}]`,
  b: "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))", Z: "$",
};
const IGNORECASE = 2, VERBOSE = 64;  // of Python's `re`
const both = c => c.toLowerCase() + c.toUpperCase();

/** The source of a Python pattern, for the flag v of JavaScript. */
function translated(source, flags) {
  const chars = [...source];
  let out = "", inClass = false, depth = 0, anyCase = null;  // anyCase: the depth at which (?i: ends
  for (let i = 0; i < chars.length; i++) {
    const c = chars[i], letter = /[a-z]/i.test(c);
    if (c === "\\") {
      const next = chars[++i];
      if (next === "U") { out += `\\u{${chars.slice(i + 1, i + 9).join("").replace(/^0+/, "")}}`; i += 8; }
      else if (next === "p") { out += chars.slice(i - 1, i + 4).join(""); i += 3; }  // \p{M}, which Python has not
      else if (KINDS[next] && !(inClass && next === "b")) out += KINDS[next];
      else out += /[A-Za-z0-9]/.test(next) || /[&\-!#%,:;<=>@`~^$.*+?()[\]{}|\/\\]/.test(next) && (inClass
        || /[\^$.*+?()[\]{}|\/\\]/.test(next)) ? `\\${next}` : next;
    } else if (inClass) {
      if (c === "]") { inClass = false; out += c; }
      else if (c === "-" && chars[i + 1] !== "]" && !out.endsWith("[") && !out.endsWith("[^")) out += c;  // a range
      else if (/[&\-!#%,:;<=>@`~$.*+?()[{}|\/]/.test(c) || c === "^" && !out.endsWith("[")) out += `\\${c}`;
      else if (anyCase !== null && letter)
        out += chars[i + 1] === "-" ? `${c}-${chars[i += 2]}${c.toUpperCase()}-${chars[i].toUpperCase()}` : both(c);
      else out += c;
    } else if (c === "[") {
      inClass = true;
      out += chars[i + 1] === "^" ? (i++, "[^") : "[";
      if (chars[i + 1] === "]") { out += "\\]"; i++; }
    } else if (c === "(") {
      depth++;
      const rest = chars.slice(i, i + 4).join("");
      if (rest.startsWith("(?P<")) { out += "(?<"; i += 3; }
      else if (rest === "(?i:") { out += "(?:"; i += 3; anyCase = depth; }
      else out += c;
    } else if (c === ")") {
      if (anyCase === depth--) anyCase = null;
      out += c;
    } else if (flags & VERBOSE && new RegExp(`[${SPACE}]`).test(c)) continue;
    else if (flags & VERBOSE && c === "#") while (i + 1 < chars.length && chars[i + 1] !== "\n") i++;
    else if (c === "$") out += "(?=\\n?$)";
    else if (c === ".") out += "[^\\n]";
    else if (c === "/") out += "\\/";
    else out += anyCase !== null && letter ? `[${both(c)}]` : c;
  }
  return out;
}

/** A compiled pattern with the calls of Python's; groups of a match are in `groups`. */
class Pattern {
  constructor(source, flags = 0) {
    const text = translated(source, flags), more = flags & IGNORECASE ? "vi" : "v";
    this.anywhere = new RegExp(text, `g${more}`);
    this.here = new RegExp(text, `y${more}`);
    this.whole = new RegExp(`^(?:${text})$`, more);
  }

  search(text) { this.anywhere.lastIndex = 0; return this.anywhere.exec(text); }
  match(text, at = 0) { this.here.lastIndex = at; return this.here.exec(text); }
  fullmatch(text) { return this.whole.exec(text); }
  finditer(text) { return text.matchAll(this.anywhere); }
  findall(text) { return text.match(this.anywhere) ?? []; }
  sub(replacement, text) { return text.replace(this.anywhere, replacement); }
}

/** A pattern written as in Python: re`[A-Z]\w+`. */
const re = ({ raw: [source] }) => new Pattern(source);

/** Tables of a module of `lib.data`: sets, lists, and compiled patterns, by their names there without "_". */
function tablesOf(module) {
  const made = ({ set, pattern, flags, pairs, list }) =>
    set ? new Set(set) : pattern !== undefined ? new Pattern(pattern, flags)
      : pairs ? pairs.map(([p, replacement]) => [made(p), replacement]) : list;
  return Object.fromEntries(Object.entries(module).map(([name, value]) => [name, made(value)]));
}

const BLANK = new RegExp(`^[${SPACE}]+$`), ENDS = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "g");
const isSpace = text => BLANK.test(text);
const strip = text => text.replace(ENDS, "");
const rstrip = text => text.replace(new RegExp(`[${SPACE}]+$`), "");
const splitWords = text => text.split(new RegExp(`[${SPACE}]+`)).filter(Boolean);
const isLower = text => /\p{Lowercase}/v.test(text) && !/[\p{Uppercase}\p{Lt}]/v.test(text);
const isUpper = text => /\p{Uppercase}/v.test(text) && !/[\p{Lowercase}\p{Lt}]/v.test(text);
const isAlpha = text => /^\p{L}+$/v.test(text);
const isDigit = text => /^[\p{Nd}\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+$/v.test(text);
const isAscii = text => /^[\x00-\x7f]*$/.test(text);

/** Lines as `str.splitlines` has them. */
function splitLines(text) {
  const lines = text.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/);
  if (!lines[lines.length - 1]) lines.pop();
  return lines;
}
