import { dayMs } from '../../shared/clock.ts';
import { forEachItem } from '../../shared/db/outage.ts';
import {
  forgetPrevious,
  listCanaries,
  reviewCanary,
  saveNotice,
} from '../../shared/db/tables/profiles.ts';
import { judgeCanary } from '../../shared/domain/apps/canary.ts';
import { displayName } from '../../shared/domain/labels.ts';
import { enqueueMessage } from '../../shared/queue/message-jobs.ts';
import type { EndingCredentials } from '../../shared/queue/report.ts';
import type { DispatcherDeps } from '../deps.ts';

const canariesAtOnce = 500;
/** Time for which replaced credentials are kept, for a rollback. */
const previousMs = 7 * dayMs;

/**
 * Decides about canaries by their age, and deletes credentials that were replaced long ago. Returns
 * the number of changes.
 */
export async function reviewCanaries({
  db,
  clock,
  log,
}: Pick<DispatcherDeps, 'db' | 'clock' | 'log'>): Promise<number> {
  const nowMs = clock.now();
  let changed = await forgetPrevious(db, new Date(nowMs - previousMs));
  await forEachItem(await listCanaries(db, canariesAtOnce), async (rotation) => {
    if (!judgeCanary(rotation, nowMs - rotation.changedAt.getTime())) return;
    const state = await reviewCanary(db, rotation, nowMs);
    if (!state) return;
    changed += 1;
    const { appId, connector, name } = rotation;
    log.info({ appId, connector, profile: name, state }, 'a canary of credentials has ended');
  });
  return changed;
}

/**
 * Days before credentials expire at which the operator gets a mail. 0: the credentials have
 * expired.
 */
const steps = [0, 1, 7, 30] as const;

type NoticeDeps = Pick<
  DispatcherDeps,
  'db' | 'vault' | 'clock' | 'queue' | 'operatorMail' | 'webhooks'
>;

/**
 * Reports credentials that expire within 30 days to webhooks, and mails the operator
 * (`OPERATOR_MAIL`) about them, once at each step. The mail is a message of the app's outbox. It is
 * stored in one transaction with the step.
 */
export async function noticeEnding(
  deps: NoticeDeps,
  credentials: readonly EndingCredentials[],
): Promise<void> {
  const { operatorMail: to, clock } = deps;
  await forEachItem(credentials, async (ending) => {
    const days = steps.find((step) => ending.endsAtMs - clock.now() <= step * dayMs);
    if (days === undefined) return;
    await emitOnce(deps, ending, days);
    if (to !== undefined) await mailOnce(deps, ending, { to, days });
  });
}

/** Reports a step to webhooks, once for each endpoint. */
function emitOnce(
  { webhooks }: NoticeDeps,
  { appId, connector, profile, endsAtMs }: EndingCredentials,
  days: number,
): Promise<void> {
  const endsAt = new Date(endsAtMs).toISOString();
  const onceKey = `credentials ${connector}/${profile} ${endsAt} ${days}`;
  const data = { connector, profile, endsAt, days };
  return webhooks.emitAlone({ appId, type: 'credentials.ending', data, onceKey });
}

/** Mails a step to the operator, once. */
function mailOnce(
  { db, vault, queue }: NoticeDeps,
  { appId, connector, profile, endsAtMs }: EndingCredentials,
  { to, days }: { to: string; days: number },
): Promise<void> {
  const endsAt = new Date(endsAtMs);
  const subject = `Credentials of ${displayName(connector)} ${days === 0 ? 'have ended' : `end within ${days} days`}`;
  const text = [
    `The credentials of the profile ${connector}/${profile} of app ${appId} end at ${endsAt.toISOString()}.`,
    'After that the gateway refuses every push of this profile.',
    `Make new ones, and try them first: carillon profile stage ${appId} ${connector} <files> --name ${profile}`,
  ].join('\n');
  return db.transaction(async (tx) => {
    if (!(await saveNotice(tx, { appId, connector, profile, endsAt, days }))) return;
    const mail = { fromName: 'Carillon', subject };
    const message = { kind: 'mail', to, type: 'credentialsEnd', text, mail } as const;
    await enqueueMessage({ vault, queue }, tx, appId, message);
  });
}
