import type { ApiDeps } from '../deps.ts';
import type { DryRunService } from '../push/explain/dry-run.ts';
import type { PushTraceService } from '../push/explain/push-trace.ts';
import type { PushRecordService } from '../push/push-records.ts';
import type { PushService } from '../push/pushes.ts';
import { AttemptLimit, CallLimit } from './access/call-limit.ts';
import { OidcLoginService } from './access/oidc-logins.ts';
import { SecretRotationService } from './access/secret-rotation.ts';
import { ConsoleSessionService } from './access/sessions.ts';
import { ConsoleTokenService, OperatorIdentities } from './access/tokens.ts';
import { AuditService, type ReadAudit } from './audit/audit.ts';
import { DevicePushService, DeviceService } from './devices/devices.ts';
import { DoctorService } from './doctor/doctor.ts';
import { EventService } from './events/events.ts';
import { ProfileCheckService } from './gateways/profile-check.ts';
import { ProfileDetailService } from './gateways/profile-detail.ts';
import { ProfileRotationService } from './gateways/profile-rotations.ts';
import { QuotaService } from './gateways/quotas.ts';
import { AppListService } from './lists/app-list.ts';
import { MetaService } from './overview/meta.ts';
import { MoveInService } from './overview/move-in.ts';
import { OverviewService, QueueService, SearchService } from './overview/overview.ts';
import { FailureService, PushListService } from './pushes/push-list.ts';
import { AudienceService } from './sending/audience.ts';
import { RecallService } from './sending/recalls.ts';
import { RecurringPushService } from './sending/recurring.ts';
import { RedriveForecastService, RedriveService } from './sending/redrive.ts';
import { SavedItemService } from './sending/saved-items.ts';
import { ScheduledPushService } from './sending/scheduled.ts';
import { FreezeService, SendingService, SuggestionService } from './sending/sending.ts';
import { WebhookService } from './webhooks/webhooks.ts';

/** Services of pushes that the console uses. */
export interface PushServices {
  records: PushRecordService;
  traces: PushTraceService;
  pushes: PushService;
  dryRun: DryRunService;
  reads: ReadAudit;
}

/** Creates the services of the console: access, lists, overview, live updates, sending. */
export function createConsole(deps: ApiDeps, services: PushServices) {
  const { records, traces } = services;
  const attempts = new AttemptLimit(deps.clock);
  const identities = new OperatorIdentities(deps);
  const callLimit = new CallLimit(deps.clock);
  const consoleSessions = new ConsoleSessionService(deps, identities, { attempts, callLimit });
  const oidcLogins = new OidcLoginService(deps, consoleSessions);
  const consoleTokens = new ConsoleTokenService(deps);
  const pushList = new PushListService(deps, records);
  const overview = new OverviewService(deps, pushList);
  const events = new EventService(deps, { records, overview, identities });
  consoleSessions.onEnded = () => void events.hub.recheck();
  consoleTokens.onEnded = consoleSessions.onEnded;
  const profileDetails = new ProfileDetailService(deps);
  const profileChecks = new ProfileCheckService(deps, profileDetails);
  return {
    attempts,
    callLimit,
    appList: new AppListService(deps),
    profileDetails,
    doctor: new DoctorService(deps),
    secretRotation: new SecretRotationService(deps),
    quotas: new QuotaService(deps),
    webhooks: new WebhookService(deps),
    profileChecks,
    profileRotations: new ProfileRotationService(deps, profileChecks),
    operatorIdentities: identities,
    consoleSessions,
    oidcLogins,
    consoleTokens,
    pushList,
    overview,
    events,
    failures: new FailureService(deps, records),
    devices: new DeviceService(deps, services.reads),
    devicePushes: new DevicePushService(deps, traces),
    search: new SearchService(deps),
    audit: new AuditService(deps),
    meta: new MetaService(deps),
    moveIn: new MoveInService(deps),
    queues: new QueueService(deps),
    ...createSending(deps, services, pushList),
  };
}

/** Creates the services that send pushes or help to write them. */
function createSending(deps: ApiDeps, services: PushServices, pushList: PushListService) {
  const sending = new SendingService(deps, services);
  const redrives = new RedriveService(deps, services, sending);
  return {
    sending,
    freezes: new FreezeService(deps),
    redrives,
    recalls: new RecallService(deps, services, sending),
    redriveForecasts: new RedriveForecastService(deps, redrives),
    audience: new AudienceService(deps, services.reads),
    suggestions: new SuggestionService(deps),
    scheduled: new ScheduledPushService(deps, pushList),
    recurring: new RecurringPushService(deps, services.pushes, sending),
    savedItems: new SavedItemService(deps),
  };
}
