import { availableParallelism } from 'node:os';
import { describe, expect, test } from 'vitest';
import {
  ConfigError,
  type Environment,
  environmentWarnings,
  readConfig,
  readLocalConfig,
} from '../../shared/config/config.ts';

const secret = Buffer.alloc(32, 1).toString('base64');
const other = Buffer.alloc(32, 2).toString('base64');
const needed = {
  DATABASE_URL: 'postgresql://u@h/carillon',
  CARILLON_ADMIN_TOKEN: 'sixteen-letters!',
  CARILLON_SECRET: secret,
};

const errorsOf = (env: Environment, read: (env: Environment) => unknown = readConfig): string[] => {
  try {
    read(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.messages;
    throw error;
  }
};

describe('readConfig refuses', () => {
  test('missing variables, all at once, with the expected form', () => {
    const messages = errorsOf({});
    expect(messages.map((line) => line.split(' ')[0])).toEqual(Object.keys(needed));
    for (const line of messages) expect(line).toMatch(/is missing; expected/);
    expect(errorsOf({ ...needed, DATABASE_URL: '' })).toEqual([messages[0]]);
  });

  const wrong: [string, string[], string][] = [
    ['PORT', ['x', '-1', '65536', '8080.5', '0x50', '1e3', ' ', '8080 '], 'port|whole'],
    ['METRICS_PORT', ['x', '70000'], 'port'],
    ['PUBLIC_URL', ['x', 'ftp://x', '//x', 'localhost:8080', 'http://'], 'http:// or https://'],
    ['DATABASE_URL', ['mysql://x', 'x', 'postgres'], 'postgresql://'],
    ['DATABASE_URL', ['postgresql://u:%ff@h/d', 'postgresql://u:p%E9@h/d'], 'UTF-8'],
    [
      'DATABASE_URL',
      ['postgresql://h:99999/d', 'postgresql://h/d?sslmode=require&sslrootcert=/no/file'],
      'cannot be read',
    ],
    [
      'PUBLIC_URL',
      ['https://user:secret@push.example', 'https://push.example/?a=b'],
      'without user',
    ],
    ['DATABASE_URL', ['postgresql://x/y?sslmode=yes', 'postgresql://x/y?sslmode=verify-ca'], 'ssl'],
    ['DATABASE_READ_URL', ['x'], 'postgresql://'],
    ['DATABASE_DIRECT_URL', ['x'], 'postgresql://'],
    ['DATABASE_POOLER', ['session'], 'none or transaction'],
    ['DATABASE_CONNECTIONS_CALLS', ['1', '1001', 'x'], 'at least|at most|whole'],
    ['CARILLON_ADMIN_TOKEN', ['short'], '16 characters'],
    ['METRICS_TOKEN', ['short'], '16 characters'],
    [
      'CARILLON_SECRET',
      ['x', Buffer.alloc(31).toString('base64'), `${secret},x`, `${secret},`, ','],
      '32 bytes',
    ],
    ['DISPATCHER_THREADS', ['0', '257', '1.5', 'many'], 'at least|at most|whole|number'],
    ['CARILLON_PRIVATE_HOSTS', ['10.0.0.0/33', 'a b', 'x,127.1'], 'entry'],
    ['TRUSTED_PROXIES', ['-1', '11', 'all', '1.5'], 'whole number|at most'],
    ['SMTP_URL', ['http://x', 'x'], 'smtp://'],
    ['SMS_WEBHOOK_URL', ['smtp://x'], 'http://'],
    ['LOG_LEVEL', ['loud', 'INFO'], 'expected one of fatal, error'],
  ];
  test.each(wrong)('%s: %j', (name, values, expected) => {
    for (const value of values) {
      const messages = errorsOf({ ...needed, [name]: value });
      expect({ value, messages }).toEqual({
        value,
        messages: [expect.stringMatching(new RegExp(`^${name} is wrong: .*(${expected})`))],
      });
      if (value.trim().length > 1 && name !== 'LOG_LEVEL')
        expect(messages[0]).not.toContain(`"${value}"`);
    }
  });

  test('without quoting values, which may be secrets', () => {
    const env = {
      DATABASE_URL: 'SESAME',
      CARILLON_ADMIN_TOKEN: 'SESAME',
      CARILLON_SECRET: 'SESAME',
      LOG_LEVEL: 'SESAME',
    };
    expect(errorsOf(env)).toHaveLength(4);
    expect(errorsOf(env).join()).not.toContain('SESAME');
  });
});

describe('readConfig', () => {
  test('has the defaults of the documentation', () => {
    expect(readConfig(needed)).toEqual({
      databaseDirectUrl: needed.DATABASE_URL,
      pooler: 'none',
      privateHosts: '',
      pushHosts: '',
      connections: {
        calls: 10,
        admission: 5,
        saves: 2,
        queries: 8,
        dispatcher: 10,
        small: 4,
        scans: 18,
        thread: 4,
      },
      port: 8080,
      host: '0.0.0.0',
      publicUrl: 'http://127.0.0.1:8080',
      databaseUrl: needed.DATABASE_URL,
      databaseReadUrl: needed.DATABASE_URL,
      adminToken: needed.CARILLON_ADMIN_TOKEN,
      secrets: [Buffer.alloc(32, 1)],
      dispatcherThreads: availableParallelism(),
      metricsPort: 9464,
      metricsHost: '0.0.0.0',
      metricsToken: undefined,
      trustedProxies: 0,
      smtpUrl: undefined,
      sms: undefined,
      logLevel: 'info',
      isTest: false,
    });
  });

  test('reads the variables that are set', () => {
    const set = {
      PORT: '0',
      HOST: '::1',
      METRICS_TOKEN: 'a token of sixteen',
      PUBLIC_URL: 'https://push.example.com/base//',
      DATABASE_READ_URL: 'postgres://standby/x',
      CARILLON_SECRET: `${other}, ${secret}`,
      DISPATCHER_THREADS: '3',
      NODE_ENV: 'test',
      LOG_LEVEL: 'silent',
      SMTP_URL: 'smtps://user:pass@mail.example.com',
    };
    expect(readConfig({ ...needed, ...set })).toMatchObject({
      port: 0,
      host: '::1',
      metricsHost: '::1',
      metricsToken: 'a token of sixteen',
      publicUrl: 'https://push.example.com/base',
      databaseReadUrl: 'postgres://standby/x',
      secrets: [Buffer.alloc(32, 2), Buffer.alloc(32, 1)],
      dispatcherThreads: 3,
      isTest: true,
      logLevel: 'silent',
    });
  });

  test('PUBLIC_URL follows PORT', () => {
    expect(readConfig({ ...needed, PORT: '9000' }).publicUrl).toBe('http://127.0.0.1:9000');
  });

  test('an empty variable counts as missing', () => {
    expect(readConfig({ ...needed, PORT: '', LOG_LEVEL: '', DATABASE_READ_URL: '' })).toEqual(
      readConfig(needed),
    );
  });
});

describe('readLocalConfig', () => {
  test('needs no variable', () => {
    expect(readLocalConfig({})).toMatchObject({
      dataDir: '.carillon',
      host: '127.0.0.1',
      publicUrl: undefined,
      metricsUrl: undefined,
      databaseUrl: undefined,
      adminToken: undefined,
    });
  });

  test('PUBLIC_URL takes precedence over PORT', () => {
    expect(readLocalConfig({ PORT: '9000' }).publicUrl).toBe('http://127.0.0.1:9000');
    expect(readLocalConfig({ PORT: '9000', PUBLIC_URL: 'https://x.test/' }).publicUrl).toBe(
      'https://x.test',
    );
    expect(readLocalConfig({ METRICS_PORT: '9001' }).metricsUrl).toBe('http://127.0.0.1:9001');
    expect(readLocalConfig({ METRICS_PORT: '9001', METRICS_HOST: '::1' }).metricsUrl).toBe(
      'http://[::1]:9001',
    );
    expect(readLocalConfig({ METRICS_PORT: '9001', METRICS_HOST: '::' }).metricsUrl).toBe(
      'http://127.0.0.1:9001',
    );
    expect(readConfig({ ...needed, METRICS_HOST: '10.0.0.1' }).metricsHost).toBe('10.0.0.1');
  });

  test('names invalid variables', () => {
    expect(errorsOf({ PORT: 'x', DATABASE_URL: 'SESAME' }, readLocalConfig)).toEqual([
      expect.stringContaining('PORT is wrong'),
      expect.stringContaining('DATABASE_URL is wrong'),
    ]);
  });
});

describe('names of variables', () => {
  test.each([
    ['CARILLON_SECERT', 'CARILLON_SECRET'],
    ['CARILLON_ADMINTOKEN', 'CARILLON_ADMIN_TOKEN'],
    ['CARILLON_DATADIR', 'CARILLON_DATA_DIR'],
  ])('%s causes a warning that suggests %s', (name, known) => {
    expect(environmentWarnings({ [name]: 'SESAME' })).toEqual([
      `${name} is not a variable of Carillon: did you mean ${known}?`,
    ]);
  });

  test('without a similar known name cause a warning without a suggestion', () => {
    expect(environmentWarnings({ CARILLON_FAVOURITE_COLOUR_OF_THE_OPERATOR: 'blue' })).toEqual([
      'CARILLON_FAVOURITE_COLOUR_OF_THE_OPERATOR is not a variable of Carillon',
    ]);
  });

  test('that are known, or have another prefix, cause no warning', () => {
    const env = {
      CARILLON_SECRET: 'x',
      CARILLON_DATA_DIR: 'x',
      CARILLON_FUNCTIONS_DIR: 'x',
      SECRET: 'x',
    };
    expect(environmentWarnings(env)).toEqual([]);
  });
});
