import { RoleDirectory } from '../../shared/db/role-directory.ts';
import { Accounts } from './accounts/accounts.ts';
import { AppService } from './apps.ts';
import { BatchService } from './batch/batches.ts';
import { BreakerService } from './breakers.ts';
import { ChannelService } from './channel.ts';
import { CloudQueryService } from './cloud-query.ts';
import { ControlService } from './control.ts';
import { DateService } from './date.ts';
import { DryRunService } from './explain/dry-run.ts';
import { WhyService } from './explain/why.ts';
import { FunctionService } from './functions/functions.ts';
import { Hooks } from './functions/hooks.ts';
import { FunctionHosts } from './functions/hosts.ts';
import { HealthService } from './health.ts';
import { InstallationService } from './installations.ts';
import type { Means } from './means.ts';
import { NotificationService } from './notifications.ts';
import { OutboxService } from './outbox.ts';
import { ProfileService } from './profiles.ts';
import { PushService } from './pushes.ts';
import { ReceiptService } from './receipts.ts';
import { RoleLookup } from './roles/lookup.ts';
import { RoleService } from './roles/roles.ts';
import { ScanService } from './scans.ts';
import { ScheduleService } from './schedules.ts';
import { createMessaging } from './sms/index.ts';
import { UsageService } from './usage.ts';

/** What routes can call, one member per noun. */
export function createServices(means: Means) {
  const notifications = new NotificationService(means);
  const messaging = createMessaging(means);
  const functionHosts = new FunctionHosts(means);
  const hooks = new Hooks(means, functionHosts);
  const accounts = new Accounts(means, messaging, hooks);
  const installations = new InstallationService(means);
  const roleDirectory = new RoleDirectory(means.db, means.clock);
  const roleLookup = new RoleLookup(means, accounts.lookup);
  return {
    directory: means.directory,
    accounts,
    apps: new AppService(means),
    batches: new BatchService(means),
    breakers: new BreakerService(means),
    channel: new ChannelService(means),
    functionHosts,
    hooks,
    functions: new FunctionService(functionHosts),
    health: new HealthService(means, messaging.pumping),
    installations,
    cloudQuery: new CloudQueryService({ users: accounts.lookup, installations, roles: roleLookup }),
    roles: new RoleService(means, roleDirectory),
    roleLookup,
    roleDirectory,
    outbox: new OutboxService(means),
    profiles: new ProfileService(means),
    pushes: new PushService(means),
    receipts: new ReceiptService(means),
    scans: new ScanService(means),
    schedules: new ScheduleService(means),
    sms: messaging.sms,
    smsTexts: messaging.smsTexts,
    captchas: messaging.captchas,
    notifications,
    control: new ControlService(means, notifications),
    date: new DateService(means),
    users: accounts.users,
    userLookup: accounts.lookup,
    login: accounts.login,
    sessions: accounts.sessions,
    ownSession: accounts.ownSession,
    phones: accounts.phones,
    emails: accounts.emails,
    usage: new UsageService(means),
    dryRun: new DryRunService(means),
    why: new WhyService(means),
  };
}

export type Services = ReturnType<typeof createServices>;
