import { runInLane } from '../../../../shared/db/limits/lane.ts';
import { listUnreached, markResent } from '../../../../shared/db/tables/pushes/reports/resend.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { PushOrder, PushTiming } from '../../../../shared/domain/pushes/push.ts';
import { operatorStatus, type Push } from '../../../../shared/domain/pushes/record.ts';
import type { ApiDeps } from '../../deps.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import type { PushSender, PushService } from '../../push/pushes.ts';
import { requireApp } from '../apps.ts';
import type { SendingService, SentPush } from './sending.ts';

/** Recipients of one push that can be sent to again: the new push lists them. */
const maxRecipients = 1000;

/** Sends a finished push again to the recipients that it did not reach (protocol/admin-api.md#resend). */
export class ResendService {
  readonly #deps: ApiDeps;
  readonly #records: PushRecordService;
  readonly #pushes: PushService;
  readonly #sending: SendingService;

  constructor(
    deps: ApiDeps,
    services: { records: PushRecordService; pushes: PushService },
    sending: SendingService,
  ) {
    this.#deps = deps;
    this.#records = services.records;
    this.#pushes = services.pushes;
    this.#sending = sending;
  }

  /**
   * Sends the content of a push to its recipients with these outcomes, once: a second call could reach some twice. Throws
   * 404/101, 409 for a push that is not finished, has no such recipient or was sent again, 154 for too many.
   */
  async resend(
    operator: Operator,
    { appId, publicId }: { appId: string; publicId: string },
    outcomes: readonly string[],
  ): Promise<SentPush> {
    const app = await requireApp(this.#deps, appId);
    const push = await this.#records.find(appId, publicId);
    if (push.totals === null)
      throw refuse('conflict', `The push is ${operatorStatus(push)}: some of its recipients are open.`);
    return runInLane(appId, async () => {
      const found = { outcomes, limit: maxRecipients + 1 };
      const ids = await listUnreached(this.#deps.db, push, found);
      if (ids.length === 0)
        throw refuse('conflict', 'The push has no recipient that certainly did not get it.');
      if (ids.length > maxRecipients)
        throw refuse('thresholdExceeded', `At most ${maxRecipients} recipients can be sent to again.`);
      const sender = senderWithMark(this.#sending.senderOf(operator, app, terms(push)), push);
      const request = { pushOrder: orderTo(push, ids), timing: timingOf(push), warnings: [] };
      return this.#sending.withStatus(appId, await this.#pushes.sendOrder(sender, request));
    });
  }
}

const terms = ({ objectId }: Push) => ({ prodHeader: undefined, undoSeconds: 0, resent: objectId });

/** Returns the sender, who also notes the new push at the old one in its transaction. */
function senderWithMark(sender: PushSender, push: Push): PushSender {
  const { terms: own } = sender;
  if (!own) return sender;
  const onStored: typeof own.onStored = async (tx, created) => {
    if (!(await markResent(tx, push, created.objectId)))
      throw refuse('conflict', 'The push was sent again already: send that push again.');
    await own.onStored(tx, created);
  };
  return { ...sender, terms: { ...own, onStored } };
}

const orderTo = ({ pushOrder }: Push, ids: string[]): PushOrder => ({
  ...pushOrder,
  target: { kind: 'query', where: { objectId: { $in: ids } }, channels: null },
});

/** Returns the times of the new push: it is sent now and lives as long as the old one did. */
function timingOf({ pushTime, expiresAt }: Push): PushTiming {
  const seconds = Math.max(1, Math.round((expiresAt.getTime() - pushTime.getTime()) / 1000));
  const none = { notificationId: null, reqId: null, pushTime: null, expirationTime: null };
  return { ...none, expirationSeconds: seconds };
}
