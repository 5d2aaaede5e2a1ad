import {
  type FailureFilter,
  listFailurePage,
  readSettledSpan,
  readTimeline,
  summarizeFailures,
} from '../../../../shared/db/tables/push-failures.ts';
import { listGatewayMessages } from '../../../../shared/db/tables/receipts.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { remedyOf } from '../../../../shared/domain/admin/remedies.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import type { ApiDeps } from '../../deps.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import { type PageRequest, toPage } from '../lists/page.ts';

/** Causes in a summary; the reasons of a gateway are a bounded set. */
const maxCauses = 200;
/** Points of a timeline; a push that takes longer gets a longer step. */
const maxSteps = 600;
const secondMs = 1000;

/** Recipients that a push did not reach, its course, and the message ids of gateways (protocol/admin-api.md#failures). */
export class FailureService {
  readonly #deps: ApiDeps;
  readonly #records: PushRecordService;

  constructor(deps: ApiDeps, records: PushRecordService) {
    this.#deps = deps;
    this.#records = records;
  }

  /** Lists failures in the order of the installations. Throws 404/101 for an unknown push. */
  async list(appId: string, publicId: string, { before, limit, ...filter }: FailureFilter & PageRequest) {
    const push = await this.#records.find(appId, publicId);
    const page = { after: before, limit: limit + 1 };
    const rows = await listFailurePage(this.#deps.db, push, filter, page);
    const { results, next } = toPage(rows, limit, ({ installation }) => installation);
    return {
      results: results.map(({ installation: _, ...row }) => ({
        ...row,
        reason: reasonText(row.reason),
        meaning: meaningOf(row.reason),
      })),
      next,
    };
  }

  /** Lists the message ids that gateways gave, oldest first. Throws 404/101 for an unknown push. */
  async messages(appId: string, publicId: string, { before, limit }: PageRequest) {
    const push = await this.#records.find(appId, publicId);
    const rows = await listGatewayMessages(this.#deps.db, push, { after: before, limit: limit + 1 });
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(({ id: _, ...row }) => row), next };
  }

  /** Counts failures by cause, each with what can be done about it. Throws 404/101 for an unknown push. */
  async summarize(appId: string, publicId: string) {
    const push = await this.#records.find(appId, publicId);
    const groups = await summarizeFailures(this.#deps.db, push, maxCauses);
    return {
      results: groups.map((group) => ({
        ...group,
        reason: reasonText(group.reason),
        meaning: meaningOf(group.reason),
        remedy: remedyOf(group.outcome, group.reason),
      })),
    };
  }

  /** Returns the settled recipients by connector and step. Throws 404/101 for an unknown push. */
  async timeline(appId: string, publicId: string, stepSeconds: number) {
    const push = await this.#records.find(appId, publicId);
    const span = await readSettledSpan(this.#deps.db, push);
    const start = push.firstSentAt ?? push.createdAt;
    const from = span && span.first < start ? span.first : start;
    const lengthMs = span ? span.last.getTime() - from.getTime() : 0;
    const stepMs = Math.max(stepSeconds, Math.ceil((lengthMs + 1) / secondMs / maxSteps)) * secondMs;
    const slots = span ? await readTimeline(this.#deps.db, push, { from, stepMs }) : [];
    const count = span ? Math.floor(lengthMs / stepMs) + 1 : 0;
    const zeros = () => Array<number>(count).fill(0);
    const connectors: Record<string, { sent: number[]; other: number[] }> = {};
    for (const { connector, slot, sent, other } of slots) {
      connectors[connector] ??= { sent: zeros(), other: zeros() };
      connectors[connector].sent[slot] = sent ?? 0;
      connectors[connector].other[slot] = other ?? 0;
    }
    return { from, stepMs, connectors };
  }
}
