import { rotateOnce } from '../../../dispatcher/background/secret-rotation.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { Vault } from '../../../shared/crypto.ts';
import { Database } from '../../../shared/db/pool.ts';
import { createLogger } from '../../../shared/process/logging.ts';

/**
 * Rotates CARILLON_SECRET until some values have changed. Then waits inside the next transaction to
 * be killed.
 */
const env = currentEnvironment();
const vault = new Vault(
  (env.TEST_SECRETS ?? '').split(',').map((key) => Buffer.from(key, 'base64')),
);
const db = new Database({ url: env.TEST_DATABASE_URL ?? '', applicationName: 'test' });
const log = createLogger({ level: 'silent', name: 'test' });

while ((await rotateOnce({ db, vault, log })).changed < 100);
const neverCommitting: Pick<Database, 'transaction'> = {
  transaction: (work) =>
    db.transaction(async (tx, last) => {
      await work(tx, last);
      process.send?.('within a transaction');
      return new Promise(() => undefined);
    }),
};
await rotateOnce({ db: neverCommitting, vault, log });
