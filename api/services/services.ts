import { Accounts } from './accounts/accounts.ts';
import { BatchService } from './batch/batches.ts';
import { ClientStorage } from './client-storage.ts';
import type { ApiDeps } from './deps.ts';
import { FunctionService } from './functions/functions.ts';
import { Hooks } from './functions/hooks.ts';
import { FunctionHosts } from './functions/hosts.ts';
import { InstallationService } from './installations/installations.ts';
import { WebPushKeys } from './installations/web-push-keys.ts';
import { MessageRedriveService } from './messages/message-redrive.ts';
import { OutboxService } from './messages/outbox.ts';
import { AppService } from './operator/apps.ts';
import { ReadAudit } from './operator/audit/audit.ts';
import { BreakerService } from './operator/breakers.ts';
import { createConsole } from './operator/console.ts';
import { DeviceEditService } from './operator/devices/devices.ts';
import { ProfileService } from './operator/gateways/profiles.ts';
import { UsageService } from './operator/gateways/quotas.ts';
import { ReportService } from './operator/reports/reports.ts';
import { ActivitySendingService } from './operator/sending/activity-sending.ts';
import { PersonalDataService } from './operator/users/personal-data.ts';
import { UserAdminService } from './operator/users/users.ts';
import { BroadcastChannelService } from './push/broadcast-channels.ts';
import { DryRunService } from './push/explain/dry-run.ts';
import { PushTraceService } from './push/explain/push-trace.ts';
import { LiveActivityService } from './push/live-activities.ts';
import { PushControlService } from './push/push-control.ts';
import { PushEventService } from './push/push-events.ts';
import { PushRecordService } from './push/push-records.ts';
import { PushService, ScheduleService } from './push/pushes.ts';
import { FailedReceiptService, ReceiptService } from './push/receipts.ts';
import { CloudQueryService, ScanService } from './queries/scans.ts';
import { RoleLookup } from './roles/lookup.ts';
import { RoleCache, RoleService } from './roles/roles.ts';
import { AppRouterService, DateService, HealthService } from './server/service.ts';
import { SmsReceiptService } from './sms/receipts.ts';
import { createMessaging } from './sms/sms.ts';

/** Creates the services that routes call. */
export function createServices(deps: ApiDeps) {
  const pushRecords = new PushRecordService(deps);
  const storage = new ClientStorage(deps.clock);
  const reads = new ReadAudit(deps);
  const messaging = createMessaging(deps, { storage, reads });
  const functionHosts = new FunctionHosts(deps);
  const hooks = new Hooks(deps, functionHosts);
  const accounts = new Accounts(deps, { messaging, functionHooks: hooks, storage });
  const webPushKeys = new WebPushKeys(deps);
  const installations = new InstallationService(deps, storage, webPushKeys);
  const roleCache = new RoleCache(deps.db, deps.clock);
  const pushTraces = new PushTraceService(deps);
  const pushes = new PushService(deps);
  const receipts = new ReceiptService(deps);
  const dryRun = new DryRunService(deps, reads);
  const liveActivities = new LiveActivityService(deps, { pushes, dryRun });
  const operator = createConsole(deps, {
    records: pushRecords,
    traces: pushTraces,
    pushes,
    dryRun,
    reads,
  });
  const broadcastChannels = new BroadcastChannelService(deps, { activities: liveActivities });
  const roleLookup = new RoleLookup(deps, accounts.lookup);
  return {
    appCache: deps.appCache,
    ...operator,
    accounts,
    apps: new AppService(deps, reads),
    batches: new BatchService(deps),
    breakers: new BreakerService(deps),
    appRouter: new AppRouterService(deps),
    functionHosts,
    hooks,
    functions: new FunctionService(functionHosts),
    health: new HealthService(deps, messaging.pumping),
    installations,
    webPushKeys,
    deviceEdits: new DeviceEditService(deps, installations),
    cloudQuery: new CloudQueryService({ users: accounts.lookup, installations, roles: roleLookup }),
    roles: new RoleService(deps, { roleCache, storage }),
    roleLookup,
    roleCache,
    outbox: new OutboxService(deps, reads),
    messageRedrives: new MessageRedriveService(deps),
    profiles: new ProfileService(deps),
    pushes,
    pushEvents: new PushEventService(deps),
    receipts,
    failedReceipts: new FailedReceiptService(deps, receipts),
    scans: new ScanService(deps),
    schedules: new ScheduleService(deps),
    sms: messaging.sms,
    smsTexts: messaging.smsTexts,
    smsReceipts: new SmsReceiptService(deps),
    captchas: messaging.captchas,
    pushRecords,
    pushControl: new PushControlService(deps, pushRecords),
    date: new DateService(deps),
    signUp: accounts.signUp,
    users: accounts.users,
    userLookup: accounts.lookup,
    userAdmin: new UserAdminService(deps, accounts, reads),
    personalData: new PersonalDataService(deps, accounts, reads),
    accountControl: accounts.control,
    login: accounts.login,
    sessions: accounts.sessions,
    currentSession: accounts.currentSession,
    phoneCodes: accounts.phoneCodes,
    phoneLogin: accounts.phoneLogin,
    phones: accounts.phones,
    emails: accounts.emails,
    usage: new UsageService(deps),
    reports: new ReportService(deps),
    dryRun,
    pushTraces,
    liveActivities,
    broadcastChannels,
    activitySending: new ActivitySendingService(deps, {
      sending: operator.sending,
      activities: liveActivities,
      channels: broadcastChannels,
    }),
  };
}

export type Services = ReturnType<typeof createServices>;
