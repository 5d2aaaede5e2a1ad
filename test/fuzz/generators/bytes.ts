import fc from 'fast-check';

/** Changes some bytes at an offset. The offset is taken modulo the length. */
interface Change {
  at: number;
  kind: 'flip' | 'set' | 'insert' | 'remove' | 'repeat' | 'cut';
  byte: number;
  length: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(1_000_000),
  kind: fc.constantFrom('flip', 'set', 'insert', 'remove', 'repeat', 'cut'),
  byte: fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), fc.nat(255)),
  length: fc.integer({ min: 1, max: 20 }),
});

function applied(bytes: Buffer, { at, kind, byte, length }: Change): Buffer {
  const place = bytes.length === 0 ? 0 : at % bytes.length;
  const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)];
  if (kind === 'insert') return Buffer.concat([before, Buffer.alloc(length, byte), after]);
  if (kind === 'remove') return Buffer.concat([before, after.subarray(length)]);
  if (kind === 'repeat') return Buffer.concat([before, after.subarray(0, length), after]);
  if (kind === 'cut') return Buffer.from(before);
  const changed = Buffer.from(bytes);
  if (place < changed.length)
    changed[place] = kind === 'set' ? byte : (changed[place] ?? 0) ^ (1 << (byte % 8));
  return changed;
}

/** Returns valid bytes with up to `maxChanges` changes. */
export const mutated = (valid: fc.Arbitrary<Buffer>, maxChanges = 4): fc.Arbitrary<Buffer> =>
  fc
    .tuple(valid, fc.array(change, { maxLength: maxChanges }))
    .map(([bytes, changes]) => changes.reduce(applied, bytes));
