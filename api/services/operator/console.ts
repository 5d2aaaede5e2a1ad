import type { ApiDeps } from '../deps.ts';
import type { PushRecordService } from '../push/push-records.ts';
import { AttemptLimit } from './access/attempts.ts';
import { OperatorIdentities } from './access/identities.ts';
import { ConsoleSessionService } from './access/sessions.ts';
import { ConsoleTokenService } from './access/tokens.ts';
import { AuditService } from './audit/audit.ts';
import { EventService } from './events/events.ts';
import { MetaService } from './overview/meta.ts';
import { OverviewService } from './overview/overview.ts';
import { QueueService } from './overview/queues.ts';
import { PushListService } from './pushes/push-list.ts';

/** Creates the services of the console: access, lists, overview, live updates. */
export function createConsole(deps: ApiDeps, records: PushRecordService) {
  const attempts = new AttemptLimit(deps.clock);
  const identities = new OperatorIdentities(deps);
  const consoleSessions = new ConsoleSessionService(deps, identities, attempts);
  const consoleTokens = new ConsoleTokenService(deps);
  const pushList = new PushListService(deps, records);
  const overview = new OverviewService(deps, pushList);
  const events = new EventService(deps, { records, overview, identities });
  consoleSessions.onEnded = () => void events.hub.recheck();
  consoleTokens.onEnded = consoleSessions.onEnded;
  return {
    attempts,
    operatorIdentities: identities,
    consoleSessions,
    consoleTokens,
    pushList,
    overview,
    events,
    audit: new AuditService(deps),
    meta: new MetaService(deps),
    queues: new QueueService(deps),
  };
}
