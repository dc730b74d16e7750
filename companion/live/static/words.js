/* Words of a text, as `lib.data.characters` and `lib.data.tokenize` have them.
 *
 * Their patterns and lists come from the library (`companion.live.rules`); functions have its names.
 */

/** A pattern of the library: the text of a regular expression with the flag v. */
class Rule {
  constructor(source) {
    Object.assign(this, { any: new RegExp(source, "v"), all: new RegExp(source, "gv"), begin: new RegExp(source, "vy"),
      whole: new RegExp(`^(?:${source})$`, "v") });
  }

  search(text) { return text.match(this.any); }
  match(text, place = 0) { this.begin.lastIndex = place; return this.begin.exec(text); }
  fullmatch(text) { return text.match(this.whole); }
  findall(text) { return text.match(this.all) ?? []; }
  split(text) { return text.split(this.all); }

  /** The text with each match replaced by what `by` makes of it. */
  sub(by, text) {
    let done = "", end = 0;
    for (const match of text.matchAll(this.all)) {
      done += text.slice(end, match.index) + (typeof by === "string" ? by : by(match));
      end = match.index + match[0].length;
    }
    return done + text.slice(end);
  }
}

/** Rules by their names: patterns, sets of words, and numbers. */
const ruled = rules => Object.fromEntries(Object.entries(rules).map(([name, rule]) =>
  [name, typeof rule === "string" ? new Rule(rule) : typeof rule === "number" ? rule : new Set(rule)]));

const CHARACTERS = ruled([RULES characters]), TOKENS = ruled([RULES tokenize]);
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/v;

const isUpper = text => /\p{Uppercase}/v.test(text) && !/[\p{Lowercase}\p{Lt}]/v.test(text);
const isLower = text => /\p{Lowercase}/v.test(text) && !/[\p{Uppercase}\p{Lt}]/v.test(text);
const isAlpha = text => /^\p{L}+$/v.test(text), isWord = token => /[\p{L}\p{N}]/v.test(token);

/** Parts between white space, and a text without it at its ends (JavaScript's own functions have another white space). */
const fields = text => text.split(SPACE).filter(Boolean);
const strip = text => text.replace(new RegExp(`^${SPACE.source}|${SPACE.source}$`, "gv"), "");

/** Lines in one, as `lib.data.characters.join_lines`. */
const joinLines = lines => CHARACTERS.BETWEEN_UNSPACED.sub("", lines.join("\n")).replaceAll("\n", " ");

const lowered = text => text.replace(/İ|I\u0307/g, "i").toLowerCase();

/** A text as every part of the library reads it. */
function clean(text) {
  text = unified(CHARACTERS.SOFT_HYPHEN.sub("", CHARACTERS.TERMINAL.sub("", text)));
  return CHARACTERS.LINE_END.search(text) ? joinCutWords(text) : text;
}

/** Every character in one way. */
function unified(text) {
  text = CHARACTERS.JOINER.sub(([, joiner]) => joiner ?? "", CHARACTERS.INVISIBLE.sub("", text));
  return CHARACTERS.COMPATIBLE.sub(([wide]) => wide.normalize("NFKC"), text).normalize("NFC");
}

/** Words in one that hyphens cut at line ends. */
function joinCutWords(text) {
  const { COMPOUND, CUT_WORD, HYPHEN, HYPHENATED, BETWEEN_PARTS, GOES_ON, NAME_OR_CODE } = CHARACTERS, counts = new Map();
  const count = word => counts.set(word, (counts.get(word) ?? 0) + 1), has = word => counts.get(lowered(word)) ?? 0;
  COMPOUND.findall(lowered(CUT_WORD.sub(" ", text))).forEach(count);
  for (const word of [...counts.keys()]) HYPHEN.split(word).filter(part => part !== word).forEach(count);
  const join = ({ groups: { before, hyphen, after }, index, input, 0: all }) => {
    if (BETWEEN_PARTS.has(after)) return `${before}${hyphen} ${after}`;
    const end = index + all.length, joined = has(before + after);
    let hyphenated = has(before + hyphen + after);
    if (!joined && !hyphenated && (
      [before, after].every(part => part.length > 3 && has(part))
      || before.length === 1
      || HYPHENATED.has(lowered(before))
      || (after.length <= 3 && GOES_ON.fullmatch(input.slice(end, end + 2)))
      || NAME_OR_CODE.search(before.slice(1) + after[0])
    )) hyphenated = 1;
    return hyphenated >= Math.max(1, joined) ? before + hyphen + after : before + after;
  };
  while (CUT_WORD.search(text)) text = CUT_WORD.sub(join, text);
  return text;
}

/** Matches of the words, numbers and marks of a clean text. */
const wordSpans = text => [...text.matchAll((TOKENS.NEEDS_ANY_SCRIPT.search(text) ? TOKENS.WORD_IN_ANY_SCRIPT : TOKENS.WORD).all)];

/** Words, numbers and marks of a text. */
const tokenize = text => wordSpans(clean(text)).map(([word]) => word);

/** Tokens as a text writes them, each with the space before it. */
function surfaces(text, spans) {
  let end = 0;
  return spans.map(({ index, 0: { length } }) => {
    const between = text.slice(end, index);
    end = index + length;
    return (between && !strip(between) ? " " : "") + text.slice(index, end);
  });
}
