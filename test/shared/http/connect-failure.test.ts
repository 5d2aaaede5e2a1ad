import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { failureCode, failureCodeOf } from '../../../shared/http/result.ts';

test('a code stays unchanged; all timeouts have one code', () => {
  expect(failureCode('CERT_HAS_EXPIRED')).toBe('CERT_HAS_EXPIRED');
  expect(failureCode('UND_ERR_CONNECT_TIMEOUT')).toBe('ETIMEDOUT');
  expect(failureCode('connect_timeout')).toBe('ETIMEDOUT');
  expect(failureCodeOf(new DOMException('late', 'TimeoutError'))).toBe('ETIMEDOUT');
});

test.each(['connect to 10.0.0.1:443', 'user:secret@proxy', '', 'x'.repeat(80), 'Bearer abc'])(
  '%j is no code',
  (text) => expect(failureCode(text)).toBeUndefined(),
);

test('a refused connection is reported by its code, even inside another error', async () => {
  const error = await new Promise<Error>((resolve) =>
    connect(9, '127.0.0.1').once('error', resolve),
  );
  expect(failureCodeOf(error)).toBe('ECONNREFUSED');
  expect(failureCodeOf(new TypeError('fetch failed', { cause: error }))).toBe('ECONNREFUSED');
  expect(failureCodeOf(new Error('the password is x'))).toBeUndefined();
});
