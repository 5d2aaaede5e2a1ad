import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { program } from '../../../ops/cli/program.ts';

/** Commands that do what an operation of the admin API does. */
const commands: Readonly<Record<string, string>> = {
  createApp: 'app create',
  listApps: 'apps',
  getApp: 'app show',
  getKey: 'app show',
  updateApp: 'app set',
  deleteApp: 'app delete',
  rotateKey: 'app rotate-key',
  putProfile: 'profile put',
  getProfile: 'profile show',
  listProfiles: 'profile list',
  checkProfile: 'profile check',
  deleteProfile: 'profile delete',
  stageProfile: 'profile stage',
  getProfileRotation: 'profile status',
  promoteProfile: 'profile promote',
  rollBackProfile: 'profile rollback',
  listBreakers: 'breakers',
  openBreaker: 'breakers',
  closeBreaker: 'breakers',
  releaseBreaker: 'breakers',
  listFreezes: 'freezes',
  freezeService: 'freeze',
  releaseService: 'unfreeze',
  freezeApp: 'freeze',
  releaseApp: 'unfreeze',
  listAudit: 'audit',
  listAppInstallations: 'devices',
  getAppInstallation: 'devices',
  listInstallationPushes: 'devices',
  updateAppInstallation: 'device update',
  deleteAppInstallation: 'device delete',
  deleteMatchingInstallations: 'device delete-all',
  deleteInvalidDevices: 'devices delete-invalid',
  search: 'search',
  listPushFailures: 'failures',
  summarizePushFailures: 'failures',
  listAppPushes: 'pushes',
  getAppPush: 'record',
  getPushProgress: 'record',
  getPushTimeline: 'record',
  getMeta: 'meta',
  getMoveIn: 'move-in-state',
  listGatewayMessages: 'message-ids',
  getOverview: 'overview',
  listQueues: 'queues',
  listJobs: 'jobs',
  createLoginLink: 'login-link',
  listConsoleSessions: 'session list',
  deleteConsoleSession: 'session delete',
  createConsoleToken: 'token create',
  listConsoleTokens: 'token list',
  deleteConsoleToken: 'token delete',
  cancelPush: 'cancel',
  pausePush: 'pause',
  approvePush: 'approve',
  resumePush: 'resume',
  pacePush: 'pace',
  resendAppPush: 'resend',
  redriveAppPush: 'redrive',
  explainRedrive: 'redrive',
  listUndelivered: 'undelivered',
  explainDevice: 'why',
  explainPush: 'push',
  sendAppPush: 'push',
  listOutbox: 'outbox',
  retryMessage: 'outbox retry',
  listFailedReceipts: 'receipts',
  redriveReceipts: 'receipts redrive',
  explainReceiptRedrive: 'receipts redrive',
  redriveMessages: 'outbox redrive',
  explainMessageRedrive: 'outbox redrive',
  getSmsState: 'sms-state',
  listProcesses: 'processes',
  runDoctor: 'doctor',
  getSecretRotation: 'secret status',
  rotateSecret: 'secret rotate',
  listAppUsers: 'user find',
  getAppUser: 'user show',
  updateAppUser: 'user update',
  deleteAppUser: 'user delete',
  logoutUser: 'user logout',
  unlockUser: 'user unlock',
  sendUserReset: 'user send-reset',
  verifyUser: 'user verify',
  countAudience: 'audience',
  listPushTemplates: 'template list',
  getPushTemplate: 'template show',
  putPushTemplate: 'template put',
  deletePushTemplate: 'template delete',
  listAudiences: 'saved-audience list',
  getAudience: 'saved-audience show',
  putAudience: 'saved-audience put',
  deleteAudience: 'saved-audience delete',
  listTestDevices: 'test-device list',
  getTestDevice: 'test-device show',
  putTestDevice: 'test-device put',
  deleteTestDevice: 'test-device delete',
  listScheduledAppPushes: 'scheduled list',
  moveScheduledAppPush: 'scheduled move',
  cancelScheduledAppPush: 'scheduled cancel',
  listRecurringPushes: 'recurring list',
  createRecurringPush: 'recurring create',
  previewRecurringPush: 'recurring preview',
  getRecurringPush: 'recurring show',
  changeRecurringPush: 'recurring change',
  deleteRecurringPush: 'recurring delete',
  startRecurringPush: 'recurring start',
  suggestFields: 'fields',
  suggestChannels: 'channels',
  putSmsTemplate: 'sms-template put',
  getSmsTemplate: 'sms-template show',
  deleteSmsTemplate: 'sms-template delete',
  listSmsTemplates: 'sms-template list',
  approveSmsTemplate: 'sms-template approve',
  putSmsSignature: 'sms-signature put',
  getSmsSignature: 'sms-signature show',
  deleteSmsSignature: 'sms-signature delete',
  listSmsSignatures: 'sms-signature list',
  approveSmsSignature: 'sms-signature approve',
  getUsage: 'usage',
  getQuotas: 'quotas',
};

/** Operations without a command, with the reason. */
const withoutCommand: Readonly<Record<string, string>> = {
  revealCaptcha: 'for tests only',
  startConsoleSession: 'a browser logs in with a cookie; a command has its token',
  getConsoleSession: 'of the cookie of a browser',
  endConsoleSession: 'of the cookie of a browser',
  streamEvents: 'a stream for pages that stay open; `push` shows its progress by reading it',
};

/** Commands that read or do something beside the admin API, or are another name of a command above. */
const ownCommands: Readonly<Record<string, string>> = {
  ...{ up: 'a process', api: 'a process', dispatcher: 'a process', sandbox: 'a process', bench: 'a process' },
  ...{ 'console build': 'files', backup: 'files', console: 'a page', 'profile help': 'text' },
  ...{ 'app list': 'apps', 'user list': 'user find' },
  ...{ 'schedule list': 'scheduled list', 'schedule cancel': 'scheduled cancel' },
  ...{ 'breakers open': 'breakers', 'breakers close': 'breakers', 'breakers release': 'breakers' },
  ...{ 'recurring enable': 'recurring change', 'recurring disable': 'recurring change' },
};

/** Commands that change the database themselves, with the action that they write into the audit. */
const audited: Readonly<Record<string, string>> = {
  import: 'import.run',
  'move-in': 'import.run',
  restore: 'service.restore',
  migrate: 'service.distribute',
};

const document = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ operationId: z.string().optional() }))),
});

/** Finds the command with these words; undefined if the program has no such command. */
function commandOf(words: string) {
  let command: typeof program | undefined = program;
  for (const word of words.split(' ')) command = command?.commands.find((one) => one.name() === word);
  return command;
}

test('every operation of the admin API has a command, or a reason to have none', () => {
  const file = join(import.meta.dirname, '../../../docs/openapi.json');
  const { paths } = document.parse(JSON.parse(readFileSync(file, 'utf8')));
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith('/console/api'))
    .flatMap(([, methods]) => Object.values(methods).flatMap(({ operationId }) => operationId ?? []));
  const known = [...Object.keys(commands), ...Object.keys(withoutCommand)];
  expect(known.toSorted()).toEqual(operations.toSorted());
  expect(Object.values(commands).filter((words) => !commandOf(words))).toEqual([]);
});

/** Lists the commands that do something, in words. */
const leaves = (command: typeof program, words: readonly string[] = []): string[] =>
  command.commands.flatMap((one) => {
    const own = [...words, one.name()];
    const below = leaves(one, own);
    return below.length > 0 && !hasAction(own.join(' ')) ? below : [own.join(' '), ...below];
  });

/** Tells whether a command with subcommands does something itself. */
const hasAction = (words: string): boolean =>
  [commands, ownCommands, audited].some((known) => Object.keys(known).includes(words)) ||
  Object.values(commands).includes(words);

test('a command either has its operation, changes nothing, or writes the audit itself', () => {
  const known = new Set([...Object.values(commands), ...Object.keys(ownCommands), ...Object.keys(audited)]);
  expect(leaves(program).filter((words) => !known.has(words))).toEqual([]);
});
