import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { equalInConstantTime, SealError, Vault } from '../../shared/crypto.ts';

const key = (byte: number) => Buffer.alloc(32, byte);
const vault = new Vault([key(1)]);

describe('Vault', () => {
  test('needs a key', () => {
    expect(() => new Vault([])).toThrow('at least one key');
  });

  test('decrypts to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, context) => {
        // JSON does not keep every value (-0).
        expect(vault.open(vault.seal(value, context), context)).toEqual(
          JSON.parse(JSON.stringify(value)),
        );
      }),
    );
  });

  test('hides the plain text, and encrypts equal values differently', () => {
    const sealed = vault.seal({ privateKey: 'SESAME' }, 'x');
    expect(sealed.toString('latin1')).not.toMatch(/SESAME|privateKey/);
    expect(sealed.equals(vault.seal({ privateKey: 'SESAME' }, 'x'))).toBe(false);
  });

  test('does not decrypt in another context', () => {
    const sealed = vault.seal('v', 'profile a apns _default');
    expect(() => vault.open(sealed, 'profile b apns _default')).toThrow(SealError);
  });

  test('detects every changed byte and every truncation', () => {
    const sealed = vault.seal('value', 'x');
    for (let i = 0; i < sealed.length; i += 1) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(i) ^ 1, i);
      expect(() => vault.open(changed, 'x')).toThrow(SealError);
      expect(() => vault.open(sealed.subarray(0, i), 'x')).toThrow(SealError);
    }
  });

  test('encrypts with the first key, and decrypts with all keys', () => {
    const old = vault.seal('old', 'x');
    const both = new Vault([key(2), key(1)]);
    expect(both.open(old, 'x')).toBe('old');
    const renewed = both.seal('new', 'x');
    expect(new Vault([key(2)]).open(renewed, 'x')).toBe('new');
    expect(() => vault.open(renewed, 'x')).toThrow('not among CARILLON_SECRET');
  });

  test('throws errors without the key or the value', () => {
    try {
      vault.open(new Vault([key(3)]).seal('SESAME', 'x'), 'x');
      expect.unreachable();
    } catch (error) {
      expect(String(error)).toBe('SealError: sealed with a key that is not among CARILLON_SECRET');
    }
  });
});

describe('equalInConstantTime', () => {
  test('equals ===, for all lengths', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(equalInConstantTime(a, b)).toBe(a === b);
        expect(equalInConstantTime(a, a)).toBe(true);
      }),
    );
  });
});
