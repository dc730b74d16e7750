/* W x for four x at a time, in WebAssembly: one instruction multiplies a number of W by a number of each of the four.
 *
 * The instructions are made below, for each width m of x. The memory that they use holds, in single precision, ROWS rows
 * of W [m], x [m, 4], a bias [ROWS] and the result [ROWS, 4].
 */

const ROWS = 64, AT_ONCE = 4;  // rows of W in the memory, and in one turn of the loop
const MEMORY = new WebAssembly.Memory({ initial: 1 }), PRODUCTS = new Map();

/** {run, W, x, bias, out} for x of m numbers: run(n) makes W x + bias of the first n rows in the memory. */
function productOf(m) {
  const known = PRODUCTS.get(m);
  if (known) return known;
  const x = 4 * m * ROWS, bias = x + 16 * m, out = bias + 4 * ROWS, end = out + 16 * ROWS;  // addresses
  if (end > MEMORY.buffer.byteLength) {
    MEMORY.grow(Math.ceil((end - MEMORY.buffer.byteLength) / 65536));
    PRODUCTS.clear();  // their arrays are of the memory as it was
  }
  const code = new WebAssembly.Module(moduleOf(instructions(m, x, bias, out)));
  const { run } = new WebAssembly.Instance(code, { "": { memory: MEMORY } }).exports;
  const array = (from, to) => new Float32Array(MEMORY.buffer, from, (to - from) / 4);
  const made = {
    run: n => run(4 * m * n), W: array(0, x), x: array(x, bias), bias: array(bias, out), out: array(out, end),
  };
  PRODUCTS.set(m, made);
  return made;
}

// ------------------------------------------------------------------------------------------------------ WebAssembly

const END = 0, ROW = 1, NUMBER = 2, FOUR = 3, BIAS = 4, OUT = 5, X = 6, SUM = 7;  // locals: 6 addresses, then vectors
const LESS = 0x49, MULTIPLY = [0xfd, 0xe6, 0x01], ADD = [0xfd, 0xe4, 0x01];
const get = local => [0x20, local], set = local => [0x21, local], address = at => [0x41, ...coded(at)];
const move = (local, by) => [get(local), address(by), 0x6a, set(local)];
const load = offset => [0xfd, 0x00, 0, coded(offset)];  // four numbers
const spread = offset => [0xfd, 0x09, 0, coded(offset)];  // one number, four times
const store = offset => [0xfd, 0x0b, 0, coded(offset)];
const loop = (...body) => [0x03, 0x40, body, 0x0d, 0, 0x0b];  // again while its last instruction says so

/** An integer in bytes of 7 bits, the last ones first (LEB128). */
function coded(n) { return n < 64 ? [n] : [n % 128 + 128, ...coded(Math.floor(n / 128))]; }

/** For AT_ONCE rows after each other until END: SUM = bias, SUM += W[., j] x[j] for every j, out = SUM. */
function instructions(m, x, bias, out) {
  const rows = Array.from({ length: AT_ONCE }, (_, r) => r), width = 4 * m;
  return [
    address(bias), set(BIAS), address(out), set(OUT),
    loop(
      rows.map(r => [get(BIAS), spread(4 * r), set(SUM + r)]),
      get(ROW), set(NUMBER), address(x), set(FOUR),
      loop(
        get(FOUR), load(0), set(X),
        rows.map(r => [get(SUM + r), get(NUMBER), spread(width * r), get(X), MULTIPLY, ADD, set(SUM + r)]),
        move(NUMBER, 4), move(FOUR, 16), get(FOUR), address(bias), LESS,
      ),
      rows.map(r => [get(OUT), get(SUM + r), store(16 * r)]),
      move(ROW, width * AT_ONCE), move(BIAS, 4 * AT_ONCE), move(OUT, 16 * AT_ONCE), get(ROW), get(END), LESS,
    ),
  ].flat(Infinity);
}

/** A module that has the memory from outside, and one function `run` of one integer. */
function moduleOf(instructions) {
  const name = text => [text.length, ...new TextEncoder().encode(text)];
  const section = (id, ...bytes) => [id, ...coded(bytes.flat().length), ...bytes.flat()];
  const body = [2, 5, 0x7f, 1 + AT_ONCE, 0x7b, ...instructions, 0x0b];  // locals: 5 integers, and vectors
  return Uint8Array.from([
    [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],  // WebAssembly, version 1
    section(1, 1, 0x60, 1, 0x7f, 0),  // a type of functions: an integer, no result
    section(2, 1, name(""), name("memory"), 2, 0, 1),
    section(3, 1, 0),  // a function of that type
    section(7, 1, name("run"), 0, 0),
    section(10, 1, coded(body.length), body),
  ].flat(Infinity));
}
