/* Characters and words of a text: `lib.data.characters` and `lib.data.words`. */

let CHARACTERS, WORDS, SENTENCES, PLAIN;

/** Take over tables and patterns of `lib.data`, by module. */
function loadRules({ characters, words, sentences, plain_text }) {
  [CHARACTERS, WORDS, SENTENCES, PLAIN] = [characters, words, sentences, plain_text].map(tablesOf);
}

const LETTER_OR_MARK = "(?:[^\\W_]|[\\p{M}])";
const UNSEEN = /[[\p{Cf}--[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u200c\u200d]]\u034f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gv;
const CUT = marked => {
  const letter = marked ? LETTER_OR_MARK : "[^\\W_]";
  return new Pattern(`(?<![-\\u2010])(?<!${letter})(?P<before>[^\\W_]${letter}*(?:[-\\u2010]${letter}+)*)`
    + `(?P<hyphen>[-\\u2010])[ \\t]*\\r?\\n[ \\t]*(?P<after>${letter}+)`);
};
const CUTS = [CUT(false), CUT(true)], SOFT = re`\xad[ \t]*\r?\n[ \t]*(?=[^\W\d_])`;

const lowered = text => text.toLowerCase().replaceAll("i\u0307", "i");

/** A text of characters that are written in one way. */
function unified(text) {
  if (isAscii(text)) return text;
  const joined = CHARACTERS.JOINER.sub((_, joiner) => joiner ?? "", text.replace(UNSEEN, ""));
  return CHARACTERS.PLAIN.sub(found => found.normalize("NFKC"), joined).normalize("NFC");
}

/** A text as every part of the library reads it: `unified`, and words whole that a line's end cuts. */
function clean(text) {
  const one = isAscii(text) ? text : unified(SOFT.sub("", text));
  return CHARACTERS.AT_LINE_END.search(one) ? withWholeWords(one) : one;
}

function withWholeWords(text) {
  const cut = CUTS[isAscii(text) ? 0 : 1], words = new Map();
  const count = (word, times) => words.set(word, (words.get(word) ?? 0) + times);
  for (const word of CHARACTERS.COMPOUND.findall(lowered(cut.sub(" ", text)))) count(word, 1);
  for (const [compound, times] of [...words])
    if (/[-\u2010]/.test(compound)) for (const part of compound.split(/[-\u2010]/)) count(part, times);
  const joined = (...found) => {
    const [{ before, hyphen, after }, string, at] = [found.at(-1), found.at(-2), found.at(-3)];
    const known = word => words.get(lowered(word)) ?? 0, whole = before + after, hyphened = before + hyphen + after;
    const follows = /[-\u2010]/.test(string.charAt(at + found[0].length));
    if (CHARACTERS.SUSPENDING.has(lowered(after)) && !follows) return `${before}${hyphen} ${after}`;
    if (known(whole) || known(hyphened)) return known(whole) > known(hyphened) ? whole : hyphened;
    const two = [before, after].every(part => [...part].length > 3 && known(part));
    return two || keepsHyphen(before, after, follows) ? hyphened : whole;
  };
  while (cut.search(text)) text = cut.sub(joined, text);
  return text;
}

/** Whether the hyphen between two parts belongs to their word, by what they are. */
function keepsHyphen(before, after, follows) {
  const first = lowered(before), second = lowered(after), letters = [...before];
  return letters.length === 1 || isDigit(letters.at(-1)) || letters.slice(1).some(c => isUpper(c) || /[-\u2010]/.test(c))
    || isUpper([...after][0]) || isDigit([...after][0]) || CHARACTERS.FIRST_PARTS.has(first)
    || CHARACTERS.SECOND_PARTS.has(second) && letters.length > 2 && !CHARACTERS.PREFIXES.has(first)
    || follows && CHARACTERS.WITHIN.has(second);
}

/** Words, numbers and marks of a sentence, in order. */
function tokenize(sentence) {
  const text = clean(sentence);
  if (isAscii(text)) return WORDS.WORD.findall(text);
  return (WORDS.needed.search(text) ? WORDS.in_any_script : WORDS.WORD).findall(text);
}

const isWord = word => /[\p{L}\p{N}]/v.test(word);
