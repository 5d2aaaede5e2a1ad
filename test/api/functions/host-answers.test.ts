import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { HostAnswers } from '../../../api/services/functions/hosts.ts';

/** Tests the memory limits for replies of function hosts on their way to a caller. */
const mb = 1024 * 1024;

/** Returns a JSON text of this length in the form in which a host sends it. */
function answerOf(bytes: number): Readable {
  const piece = Buffer.alloc(64 * 1024, 'x');
  const pieces = Math.floor(bytes / piece.length);
  return Readable.from(
    (function* () {
      yield Buffer.from('"');
      for (let i = 0; i < pieces; i += 1) yield piece;
      yield Buffer.from('"');
    })(),
  );
}

test('unsent replies are limited per app and per process', async () => {
  const answers = new HostAnswers();
  const unsentReplies: Readable[] = [];
  const hold = async (app: string) => {
    const answer = await answers.read(app, answerOf(15 * mb));
    if (answer instanceof Readable) unsentReplies.push(answer);
  };
  for (let i = 0; i < 4; i += 1) await hold('first');
  await expect(hold('first')).rejects.toMatchObject({
    status: 429,
    message: expect.stringContaining('The function ran.'),
  });
  for (let i = 0; i < 4; i += 1) await hold('second');
  await expect(hold('third')).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 });
  expect(answers.usedBytes).toBeLessThanOrEqual(128 * mb);
  for (const answer of unsentReplies) expect((await text(answer)).length).toBeGreaterThan(14 * mb);
  expect(answers.usedBytes).toBe(0);
  await hold('third');
  unsentReplies.at(-1)?.destroy();
  await expect.poll(() => answers.usedBytes).toBe(0);
});

test('a short reply takes no memory after it is read, and a refused reply never does', async () => {
  const answers = new HostAnswers();
  expect(await answers.read('app', Readable.from([Buffer.from('{"result": 1}')]))).toBe(
    '{"result": 1}',
  );
  await expect(
    answers.read('app', Readable.from([Buffer.from('{"result": ')])),
  ).rejects.toMatchObject({
    status: 502,
  });
  const deep = Buffer.from('['.repeat(1000) + ']'.repeat(1000));
  await expect(answers.read('app', Readable.from([deep]))).rejects.toMatchObject({ status: 502 });
  const broken = new Readable({ read() {} });
  const parsed = answers.read('app', broken);
  broken.push('{"result": ');
  broken.destroy(new Error('connection lost'));
  await expect(parsed).rejects.toMatchObject({ status: 502 });
  expect(answers.usedBytes).toBe(0);
});
