import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { addedBytes, encrypt, maxTextBytes } from '../../../connectors/webpush/encryption.ts';
import { isKeyPair, newKeyPair, VapidSigner } from '../../../connectors/webpush/vapid.ts';
import { decrypt } from '../../../ops/sandbox/webpush/browser.ts';
import { browser } from './fixture.ts';

const bytes = (text: string) => Buffer.from(text, 'base64url');

/** Example of RFC 8291, section 5 and appendix A. */
const example = {
  text: 'When I grow up, I want to be a watermelon',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  browserKey:
    'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  senderPrivateKey: 'yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw',
  salt: 'DGv6ra1nlYgDCS1FRnbzlw',
  body: 'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
};

describe('encryption', () => {
  test('gives the body of the example of RFC 8291, byte for byte', () => {
    const body = encrypt(
      Buffer.from(example.text),
      { publicKey: bytes(example.browserKey), auth: bytes(example.auth) },
      { salt: bytes(example.salt), privateKey: bytes(example.senderPrivateKey) },
    );
    expect(body.toString('base64url')).toBe(example.body);
  });

  test.each([0, 1, 290, maxTextBytes])('a browser decrypts a text of %i bytes', (size) => {
    const target = browser(size);
    const text = Buffer.alloc(size, 'ü');
    const body = encrypt(text, target);
    expect(body.length).toBe(size + addedBytes);
    expect(body.length).toBeLessThanOrEqual(4096);
    const opened = decrypt(body, target);
    expect(opened.ok && opened.text.equals(text)).toBe(true);
  });

  test('uses a new key pair and salt for each message', () => {
    const target = browser(1);
    const heads = Array.from({ length: 20 }, () =>
      encrypt(Buffer.from('a'), target).subarray(0, 86).toString('hex'),
    );
    expect(new Set(heads.map((head) => head.slice(0, 32))).size).toBe(20);
    expect(new Set(heads.map((head) => head.slice(42))).size).toBe(20);
  });

  test('another browser cannot decrypt a message', () => {
    const body = encrypt(Buffer.from('a'), browser(1));
    expect(decrypt(body, browser(2))).toMatchObject({ ok: false });
  });

  test('refuses a public key that is not on the curve', () => {
    const publicKey = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]);
    expect(() => encrypt(Buffer.from('a'), { publicKey, auth: Buffer.alloc(16) })).toThrow();
  });
});

describe('VAPID', () => {
  const point = (key: string) => {
    const raw = bytes(key);
    return createPublicKey({
      format: 'jwk',
      key: {
        kty: 'EC',
        crv: 'P-256',
        x: raw.subarray(1, 33).toString('base64url'),
        y: raw.subarray(33).toString('base64url'),
      },
    });
  };
  const isSigned = (token: string, key: string): boolean => {
    const [head, claims, signature] = token.split('.');
    const signed = Buffer.from(`${head}.${claims}`);
    const options = { key: point(key), dsaEncoding: 'ieee-p1363' } as const;
    return verify('sha256', signed, options, bytes(signature ?? ''));
  };

  test('the check of these tests accepts the example of RFC 8292, section 2.4', () => {
    const token =
      'eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA';
    const key =
      'BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs';
    expect(isSigned(token, key)).toBe(true);
  });

  test('signs one token for each origin, and renews it after six hours', () => {
    const pair = newKeyPair();
    expect(isKeyPair(pair)).toBe(true);
    const signer = new VapidSigner(pair, 'mailto:push@example.com');
    const startMs = Date.UTC(2027, 0, 1);
    const header = signer.authorization('https://a.example:8443', startMs);
    const [, token = '', key = ''] = /^vapid t=(\S+), k=(\S+)$/.exec(header) ?? [];
    expect(key).toBe(pair.publicKey);
    expect(isSigned(token, key)).toBe(true);
    expect(JSON.parse(bytes(token.split('.')[1] ?? '').toString())).toEqual({
      aud: 'https://a.example:8443',
      exp: startMs / 1000 + 12 * 3600,
      sub: 'mailto:push@example.com',
    });
    const hourMs = 3_600_000;
    expect(signer.authorization('https://a.example:8443', startMs + 5 * hourMs)).toBe(header);
    expect(signer.authorization('https://a.example:8443', startMs + 7 * hourMs)).not.toBe(header);
    expect(signer.authorization('https://b.example', startMs)).not.toBe(header);
  });

  test('a pair of two keys that do not belong together is no pair', () => {
    const { publicKey } = newKeyPair();
    const { privateKey } = newKeyPair();
    expect(isKeyPair({ publicKey, privateKey })).toBe(false);
    expect(isKeyPair({ publicKey: 'x', privateKey: 'y' })).toBe(false);
  });
});
