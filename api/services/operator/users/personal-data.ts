/** Export and erasure of everything that is stored of one person (operate/personal-data.md). */
import type { Handle } from '../../../../shared/db/pool.ts';
import { findInstallations } from '../../../../shared/db/tables/installations.ts';
import { openListed } from '../../../../shared/db/tables/outbox.ts';
import {
  countRowsOf,
  countTextRows,
  eraseDevices,
  eraseRows,
  listDevices,
  listTextRows,
  type Person,
  type PersonDevice,
  type PersonTexts,
  readReceiptsOf,
  readRows,
  replaceTexts,
  rowsNames,
  textsNames,
} from '../../../../shared/db/tables/persons.ts';
import { findUser } from '../../../../shared/db/tables/users.ts';
import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { installationDocument } from '../../../../shared/domain/installations/installation.ts';
import type { Json, JsonObject } from '../../../../shared/domain/json.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { identitiesOf } from '../../../../shared/domain/users/auth-data.ts';
import { type User, userDocument } from '../../../../shared/domain/users/user.ts';
import { noSuchUser } from '../../accounts/account-control.ts';
import type { Accounts } from '../../accounts/accounts.ts';
import { isObjectId } from '../../accounts/caller.ts';
import { lockDigestsOf } from '../../accounts/login/login.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { type ReadAudit, recordChange } from '../audit/audit.ts';

/** Rows of one part of an export, and devices of one transaction. */
const maxRows = 10_000;
const maxBytes = 32 * 1024 * 1024;
const devicesAtOnce = 500;
const textRowsAtOnce = 100;
/** Shorter texts stand in too many other texts to be looked for inside of them. */
const minTextChars = 5;
const timeoutMs = 60_000;

/** Report of an erasure. `erased` contains the rows by part. */
export interface ErasureReport {
  dryRun: boolean;
  erased: Record<string, number>;
  kept: { what: string; count: number | null; reason: string }[];
}

/** Person with the user and all devices. */
interface Found {
  app: App;
  user: User;
  person: Person;
  devices: PersonDevice[];
}

/** Exports and erases the data of one person. */
export class PersonalDataService {
  readonly #deps: ApiDeps;
  readonly #accounts: Pick<Accounts, 'users'>;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, accounts: Pick<Accounts, 'users'>, reads: ReadAudit) {
    this.#deps = deps;
    this.#accounts = accounts;
    this.#reads = reads;
  }

  /**
   * Returns everything that is stored of a person. Passwords, sessions and secrets of third-party
   * accounts are named without their value. Throws error 404 if the user does not exist, error 116
   * if the devices are too large.
   */
  async export(appId: string, objectId: string): Promise<JsonObject> {
    const { app, devices, person, user } = await this.#find(appId, objectId);
    const ids = devices.map(({ id }) => id);
    const { own, claims } = identitiesOf(user.authData ?? {});
    const document = await this.#deps.db.transaction(
      async (tx) => {
        const installations = await findInstallations(tx, appId, {
          objectIds: devices.map(({ names: [publicId = ''] }) => publicId),
          maxBytes,
        });
        const parts: Record<string, JsonObject[]> = {
          receipts: await readReceiptsOf(tx, person, ids, maxRows),
        };
        for (const name of rowsNames)
          parts[name] = await readRows(tx, name, { person, devices: ids, limit: maxRows });
        parts.messages = (parts.messages ?? []).map((row) => this.#opened(appId, row));
        for (const name of textsNames) parts[name] = await this.#textsOf(tx, name, person, devices);
        return {
          exportedAt: new Date(this.#deps.clock.now()).toISOString(),
          app: { appId, name: app.name },
          user: userDocument(user, { isOwn: true, hasAcl: 'stored' }),
          hasPassword: user.passwordHash !== null,
          session: 'one session, whose token is a secret and is not exported',
          thirdPartyAccounts: [...own, ...claims].map(({ platform, uid }) => ({
            platform,
            uid,
            secrets: 'not exported',
          })),
          installations: installations.map((one) =>
            installationDocument(one, { hasAcl: true, hasSubscription: true }),
          ),
          ...parts,
          isComplete: [devices, ...Object.values(parts)].every((rows) => rows.length < maxRows),
        };
      },
      { statementTimeoutMs: timeoutMs },
    );
    await this.#reads.record({ action: 'user.export', appId, target: objectId });
    return JSON.parse(JSON.stringify(document)) as JsonObject;
  }

  /**
   * Deletes everything that is stored of a person. First replaces the person's names and ids in
   * texts, then deletes the devices in pages, then the user. A call that fails can be repeated. With
   * `isDryRun`, only counts. Throws error 400 without `everything`, error 403 below the role owner,
   * error 404 if the user does not exist, and the refusals of the app's hooks, before anything is
   * deleted.
   */
  async erase(
    { role }: Operator,
    appId: string,
    objectId: string,
    { everything, isDryRun }: { everything: boolean; isDryRun: boolean },
  ): Promise<ErasureReport> {
    if (!everything) throw refuse('invalidParameter', detail('dryRunNeedsEverything'));
    if (!hasRole(role, 'owner')) throw refuse('forbidden', detail('erasureNeedsOwner'));
    const found = await this.#find(appId, objectId);
    if (isDryRun) return this.#forecast(found);
    const erased: Record<string, number> = {};
    const add = (counts: Record<string, number>) => {
      for (const [name, n] of Object.entries(counts)) erased[name] = (erased[name] ?? 0) + n;
    };
    const caller = { app: found.app, isMaster: true, session: undefined, remoteAddress: '' };
    await this.#accounts.users.delete(caller, objectId, {
      body: {},
      where: undefined,
      beforeRemoval: async () => {
        await this.#eraseTexts(found, add);
        await this.#eraseDevices(found, add);
        await this.#deps.db.transaction(async (tx) => {
          add(await eraseRows(tx, found.person));
          add({ user: 1 });
          await recordChange(tx, {
            action: 'user.erase',
            appId,
            target: objectId,
            after: { erased: { ...erased } },
          });
        });
      },
    });
    return { dryRun: false, erased, kept: await this.#kept(found) };
  }

  async #find(appId: string, objectId: string): Promise<Found> {
    const app = await requireApp(this.#deps, appId);
    const { db } = this.#deps;
    const user = isObjectId(objectId)
      ? await findUser(db, appId, { key: { objectId } })
      : undefined;
    if (!user) throw noSuchUser();
    const person: Person = {
      appId,
      userId: user.id,
      objectId: user.objectId,
      contacts: [user.email, user.mobilePhoneNumber].flatMap((one) => one ?? []),
      lockDigests: lockDigestsOf(user),
    };
    return { app, user, person, devices: await this.#devicesOf(person) };
  }

  async #devicesOf(person: Person): Promise<PersonDevice[]> {
    const devices: PersonDevice[] = [];
    for (let after = 0; devices.length < maxRows; ) {
      const page = await listDevices(this.#deps.db, person, { after, limit: devicesAtOnce });
      devices.push(...page);
      after = page.at(-1)?.id ?? 0;
      if (page.length < devicesAtOnce) break;
    }
    return devices;
  }

  async #forecast(found: Found): Promise<ErasureReport> {
    const { devices, person } = found;
    const ids = devices.map(({ id }) => id);
    const erased: Record<string, number> = { user: 1, installations: devices.length };
    await this.#deps.db.transaction(
      async (tx) => {
        erased.receipts = (await readReceiptsOf(tx, person, ids, maxRows)).length;
        for (const name of rowsNames) erased[name] = await countRowsOf(tx, name, person, ids);
        for (const name of textsNames)
          erased[name] = await countTextRows(tx, name, person.appId, searched(textsOf(found)));
      },
      { statementTimeoutMs: timeoutMs },
    );
    return { dryRun: true, erased, kept: await this.#kept(found) };
  }

  /** Replaces the person's names and ids in JSON, such as requests of pushes and audit records. */
  async #eraseTexts(found: Found, add: (counts: Record<string, number>) => void): Promise<void> {
    const texts = textsOf(found);
    const { appId } = found.person;
    for (const name of textsNames)
      for (let after = '', isLast = false; !isLast; )
        await this.#deps.db.transaction(
          async (tx) => {
            const page = { appId, texts: searched(texts), after, limit: textRowsAtOnce };
            const rows = await listTextRows(tx, name, page);
            isLast = rows.length < textRowsAtOnce;
            let replaced = 0;
            for (const row of rows) {
              if (!(await replaceTexts(tx, name, { appId, row, texts }))) {
                // The row has changed since it was read: the next page begins with it.
                isLast = false;
                break;
              }
              replaced += 1;
              after = row.key.join(' ');
            }
            add({ [name]: replaced });
          },
          { statementTimeoutMs: timeoutMs },
        );
  }

  async #eraseDevices(
    { person }: Found,
    add: (counts: Record<string, number>) => void,
  ): Promise<void> {
    // A device may register for the user at any time, so the list is read until it is empty.
    for (;;) {
      const page = await listDevices(this.#deps.db, person, { after: 0, limit: devicesAtOnce });
      if (page.length === 0) return;
      const ids = page.map(({ id }) => id);
      add(await this.#deps.db.transaction((tx) => eraseDevices(tx, person, ids)));
    }
  }

  /** Returns what stays, each with the reason. */
  async #kept(found: Found): Promise<ErasureReport['kept']> {
    const { guarded, whole } = textsOf(found);
    const inside = [...whole, ...guarded].filter((text) => text.length >= minTextChars);
    const { appId } = found.person;
    const count = await this.#deps.db.transaction(
      (tx) => countTextRows(tx, 'pushes', appId, inside.map(inner)),
      { statementTimeoutMs: timeoutMs },
    );
    return [
      {
        what: 'texts of pushes that contain a name or an address inside of a longer text',
        count,
        reason:
          'The text of a push belongs to all its recipients. Push records are deleted by age.',
      },
      {
        what: 'audit records about this user, with the objectId only',
        count: null,
        reason: 'They say who changed and who erased the user. They are deleted after a year.',
      },
      {
        what: 'calls of gateways with receipts that could not be read',
        count: null,
        reason: 'They are encrypted and are deleted after some days.',
      },
      {
        what: 'backups of the database',
        count: null,
        reason: 'They are not part of the service. Erase the user again after a restore.',
      },
    ];
  }

  async #textsOf(
    tx: Handle,
    name: (typeof textsNames)[number],
    { appId, objectId }: Person,
    devices: readonly PersonDevice[],
  ): Promise<JsonObject[]> {
    const texts = quoted([objectId, ...devices.flatMap(({ names }) => names)]);
    const rows = await listTextRows(tx, name, { appId, texts, after: '', limit: maxRows });
    return rows.map(({ key, target, values }) => ({
      key: key.join(' '),
      ...(target === null ? {} : { target }),
      values: values as Json,
    }));
  }

  /** Decrypts the text of a message. Codes and links are secrets. */
  #opened(appId: string, { body, ...row }: JsonObject): JsonObject {
    const sealed: unknown = body;
    if (!Buffer.isBuffer(sealed)) return row;
    try {
      const message = { kind: row.kind, to: row.to, type: row.type, body: sealed };
      const { code, link, text } = openListed(
        this.#deps.vault,
        appId,
        message as Parameters<typeof openListed>[2],
      );
      const secrets = [code, link].flatMap((one) => one ?? []);
      return { ...row, text: secrets.reduce((shown, one) => shown.replaceAll(one, '…'), text) };
    } catch {
      return { ...row, text: null };
    }
  }
}

/** Ids that are shorter may be the name of something else, such as a channel. */
const minIdChars = 16;

/** Returns the texts that identify the person: name, contacts, accounts and ids of devices. */
function textsOf({ devices, person, user }: Found): PersonTexts {
  const { own, claims } = identitiesOf(user.authData ?? {});
  const ids = devices.flatMap(({ names }) => names);
  const isLong = (id: string) => id.length >= minIdChars;
  return {
    whole: new Set([...person.contacts, ...ids.filter(isLong)]),
    guarded: new Set([
      user.username,
      ...[...own, ...claims].map(({ uid }) => uid),
      ...ids.filter((id) => !isLong(id)),
    ]),
    targets: new Set([user.objectId, ...devices.map(({ names: [publicId = ''] }) => publicId)]),
  };
}

/** Returns the texts for which rows are searched. */
const searched = ({ guarded, targets, whole }: PersonTexts): string[] =>
  quoted([...whole, ...guarded, ...targets]);

/** Returns texts as they stand in JSON. */
const quoted = (texts: Iterable<string>): string[] =>
  [...texts].map((text) => JSON.stringify(text));
const inner = (text: string): string => JSON.stringify(text).slice(1, -1);
