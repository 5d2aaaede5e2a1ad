import { describe, expect, test } from 'vitest';
import { createLogger } from '../../shared/process/logging.ts';

function capture(level = 'info') {
  const lines: string[] = [];
  const log = createLogger({
    level,
    name: 'api',
    destination: { write: (line) => lines.push(line) },
  });
  return { log, last: () => JSON.parse(lines.at(-1) ?? 'null'), lines };
}

describe('createLogger', () => {
  test('writes one JSON line per event, with level, time and process name', () => {
    const { log, last, lines } = capture();
    log.info({ port: 1 }, 'api is ready');
    expect(lines).toHaveLength(1);
    expect(last()).toMatchObject({ level: 'info', name: 'api', port: 1, msg: 'api is ready' });
    expect(last().time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('writes no events below the level', () => {
    const { log, lines } = capture('warn');
    log.info('quiet');
    expect(lines).toEqual([]);
  });

  const members = [
    'authorization',
    'password',
    'token',
    'deviceToken',
    'registrationId',
    'sessionToken',
    'masterKey',
    'appKey',
    'hookKey',
    'secret',
    'privateKey',
    'credentials',
    'mobilePhoneNumber',
    'email',
    'connectionString',
  ];
  test.each(members)('%s is hidden on the first three levels', (name) => {
    const { log, lines } = capture();
    log.info(
      { [name]: 'SESAME', body: { [name]: 'SESAME', user: { [name]: { deep: 'SESAME' } } } },
      'x',
    );
    expect(lines.join()).not.toContain('SESAME');
    expect(lines.join()).toContain('[hidden]');
  });

  test('secrets in a child logger are hidden as well', () => {
    const { log, lines } = capture();
    log.child({ token: 'SESAME' }).info('x');
    expect(lines.join()).not.toContain('SESAME');
  });

  test('an error keeps type, message, stack and cause, but no members of a database error', () => {
    const { log, last, lines } = capture();
    const cause = Object.assign(new TypeError('inner'), {
      code: '23505',
      detail: 'Key (email)=(SESAME)',
    });
    const error = Object.assign(new Error('outer', { cause }), {
      query: 'SESAME',
      parameters: ['SESAME'],
      where: 'SESAME',
      internalQuery: 'SESAME',
      table: 'app',
      password: 'SESAME',
    });
    log.error({ err: error }, 'failed');
    log.error({ error }, 'failed');
    log.error(error);
    for (const line of lines) {
      const { err, error: other } = JSON.parse(line);
      expect(err ?? other).toMatchObject({
        type: 'Error',
        message: 'outer',
        table: 'app',
        cause: { type: 'TypeError', message: 'inner', code: '23505' },
      });
    }
    expect(lines.join()).not.toContain('SESAME');
    expect(last().err.stack).toContain('logging.test');
  });

  test('handles cyclic errors, aggregate errors, and thrown values that are not errors', () => {
    const { log, lines } = capture();
    const a = new Error('a');
    const b = new Error('b', { cause: a });
    a.cause = b;
    log.error({ err: a }, 'round');
    const parts = [new Error('one'), Object.assign(new Error('two'), { detail: 'SESAME' })];
    log.error({ err: new AggregateError(parts, 'all') }, 'many');
    log.error({ err: 'a text' }, 'odd');
    log.error({ err: { password: 'SESAME', other: 'SESAME' } }, 'odder');
    log.error({ err: undefined }, 'nothing');
    expect(lines).toHaveLength(5);
    expect(lines.join()).toContain('one');
    expect(lines.join()).not.toContain('SESAME');
  });
});
