/** The Huffman code of HPACK (RFC 7541 5.2 and Appendix B). */

/**
 * Code lengths in bits of the symbols 0 to 255 and EOS. The code is canonical: codes are assigned
 * in ascending order by length, then by symbol. So the lengths define it.
 */
// biome-ignore format: a table reads better in rows of sixteen.
const lengths = Uint8Array.of(
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
);
const endOfString = 256;
const longestCode = 30;

/**
 * Decoder as a state machine that reads four bits at a time. Its states are the inner nodes of the
 * code tree. An entry contains the next state, flags and at most one decoded symbol, because the
 * shortest code has five bits.
 */
const emitFlag = 0x100;
const failFlag = 0x200;
/** A text may end in this state: the remaining bits are valid padding, that is, at most 7 ones. */
const acceptFlag = 0x400;
const stateShift = 11;

const codes = codesOf();
const machine = machineOf();

/** Returns the encoded length of `text` (one byte per character) in bytes. */
export function huffmanLength(text: Uint8Array): number {
  let bits = 0;
  for (const byte of text) bits += lengths[byte] ?? 0;
  return (bits + 7) >>> 3;
}

/** Encodes `text` to offset `at` of `into`. Returns the end. */
export function huffmanEncode(text: Uint8Array, into: Uint8Array, at: number): number {
  let position = at;
  let bits = 0;
  let count = 0;
  for (const byte of text) {
    const length = lengths[byte] ?? 0;
    // Up to 7 remaining bits and a code of up to 28 bits fit exactly into a double, but not into
    // 32-bit shifts.
    bits = bits * 2 ** length + (codes[byte] ?? 0);
    count += length;
    while (count >= 8) {
      count -= 8;
      const scale = 2 ** count;
      const top = Math.floor(bits / scale);
      into[position++] = top;
      bits -= top * scale;
    }
  }
  // Pads with the first bits of EOS, which are ones.
  if (count > 0) into[position++] = (bits << (8 - count)) | (0xff >>> count);
  return position;
}

/**
 * Decodes `from[start, end)` to offset `at` of `into`, which must have space for `huffmanRoom(end -
 * start)` bytes. Returns the end of the text. Returns -1 if the code is invalid: it contains EOS,
 * or its padding is longer than 7 bits or not all ones (RFC 7541 5.2).
 */
export function huffmanDecode(
  from: Uint8Array,
  start: number,
  end: number,
  into: Uint8Array,
  at: number,
): number {
  let position = at;
  let step = acceptFlag;
  for (let i = start; i < end; i++) {
    const byte = from[i] ?? 0;
    step = machine[((step >>> stateShift) << 4) | (byte >>> 4)] ?? failFlag;
    if (step & emitFlag) into[position++] = step & 0xff;
    else if (step & failFlag) return -1;
    step = machine[((step >>> stateShift) << 4) | (byte & 15)] ?? failFlag;
    if (step & emitFlag) into[position++] = step & 0xff;
    else if (step & failFlag) return -1;
  }
  return step & acceptFlag ? position : -1;
}

/**
 * Returns the length of the longest text that `bytes` bytes of code can contain. The shortest code
 * has 5 bits.
 */
export const huffmanRoom = (bytes: number): number => Math.ceil((bytes * 8) / 5);

function codesOf(): Uint32Array {
  const assigned = new Uint32Array(lengths.length);
  let next = 0;
  for (let length = 1; length <= longestCode; length++) {
    next *= 2;
    lengths.forEach((own, symbol) => {
      if (own === length) assigned[symbol] = next++;
    });
  }
  return assigned;
}

interface TreeNode {
  state: number;
  isAccepting: boolean;
  children: (TreeNode | number | undefined)[];
}

function machineOf(): Uint32Array {
  const root: TreeNode = { state: 0, isAccepting: true, children: [] };
  const nodes = [root];
  lengths.forEach((length, symbol) => {
    addCode(nodes, root, { code: codes[symbol] ?? 0, length, symbol });
  });
  const table = new Uint32Array(nodes.length * 16);
  for (const node of nodes)
    for (let bits = 0; bits < 16; bits++) table[node.state * 16 + bits] = walk(root, node, bits);
  return table;
}

function addCode(
  nodes: TreeNode[],
  root: TreeNode,
  { code, length, symbol }: { code: number; length: number; symbol: number },
): void {
  let node = root;
  for (let left = length - 1; left > 0; left--) {
    const bit = (code >>> left) & 1;
    let child = node.children[bit];
    if (typeof child !== 'object') {
      const isAccepting = node.isAccepting && bit === 1 && length - left <= 7;
      child = { state: nodes.length, isAccepting, children: [] };
      nodes.push(child);
      node.children[bit] = child;
    }
    node = child;
  }
  node.children[code & 1] = symbol;
}

function walk(root: TreeNode, from: TreeNode, bits: number): number {
  let node = from;
  let emitted = 0;
  for (let left = 3; left >= 0; left--) {
    const child = node.children[(bits >>> left) & 1];
    if (child === undefined || child === endOfString) return failFlag;
    if (typeof child === 'number') {
      emitted = emitFlag | child;
      node = root;
    } else node = child;
  }
  return (node.state << stateShift) | (node.isAccepting ? acceptFlag : 0) | emitted;
}
