import {
  checkApprovals,
  checkFreezes,
  checkGateways,
  checkPlatforms,
  type Finding,
  found,
  reasonOf,
  shownFinding,
} from '../../../api/services/operator/doctor/checks.ts';
import {
  checkCredentials,
  checkRotations,
  checkSecretKeys,
} from '../../../api/services/operator/doctor/credential-checks.ts';
import { checkProduction } from '../../../api/services/operator/doctor/production.ts';
import {
  checkProcesses,
  checkRestoration,
  checkUpkeep,
} from '../../../api/services/operator/doctor/service-checks.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  type Config,
  currentEnvironment,
  type Environment,
} from '../../../shared/config/config.ts';
import { Vault } from '../../../shared/crypto.ts';
import { setPushHosts } from '../../../shared/domain/installations/push-services.ts';
import { subjectIn, writeFinding } from '../../../shared/domain/texts/texts.ts';
import { setPrivateHosts } from '../../../shared/http/outbound-addresses.ts';
import { language, say } from '../language.ts';
import type { Report } from '../report.ts';
import { padded, widthOf } from '../table.ts';
import { checkAddress } from './address.ts';
import { checkConnections, checkNotifications, checkStatements } from './connections.ts';
import {
  checkDatabase,
  checkDisk,
  checkMigrations,
  checkSharding,
  checkStandby,
  openForChecks,
} from './database.ts';
import { type LocalEnvironment, readLocalEnvironment } from './environment.ts';
import { checkAdminToken, checkIssuer, checkProcess, checkProviders } from './processes.ts';

/**
 * Runs the checks in the order of their dependencies. Skips a check if a check that it depends on
 * has failed.
 *
 * @param env the variables with which the processes would start
 */
export async function runChecks(
  env: Environment = currentEnvironment(),
  { isProduction = false }: { isProduction?: boolean } = {},
): Promise<Report> {
  const environment = await readLocalEnvironment(env);
  const { url, metricsUrl, adminToken, config } = environment;
  if (config) {
    setPrivateHosts(config.privateHosts);
    setPushHosts(config.pushHosts);
  }
  const checks = [
    ...environment.findings,
    ...(await runDatabaseChecks(environment)),
    await checkProcess('api', url),
    ...(await checkAdminToken(url, adminToken)),
    await checkProcess('dispatcher', metricsUrl),
    ...(config
      ? await checkAddress({ url, adminToken, trustedProxies: config.trustedProxies })
      : []),
    ...(config ? await checkProviders(config) : []),
    ...(config?.oidc ? [await checkIssuer(config.oidc)] : []),
    ...(isProduction ? await runProductionChecks(environment) : []),
  ];
  const document = { checks: checks.map(shownFinding) };
  return { document, text: describe(checks), isBad: checks.some(isFailed) };
}

/** Runs the checks for production. Skips them if the database cannot be reached. */
async function runProductionChecks({ databaseUrl }: LocalEnvironment): Promise<Finding[]> {
  if (databaseUrl === undefined) return [];
  const db = openForChecks(databaseUrl);
  try {
    return await checkProduction({ db, nowMs: systemClock.now() });
  } catch (error) {
    const params = { why: reasonOf(error) };
    return [found({ name: 'database', status: 'warn', code: 'checksInterrupted', params })];
  } finally {
    await db.close();
  }
}

const isFailed = ({ status }: Finding) => status === 'fail';

async function runDatabaseChecks({ config, databaseUrl }: LocalEnvironment): Promise<Finding[]> {
  if (databaseUrl === undefined) return [];
  const db = openForChecks(databaseUrl);
  const findings: Finding[] = [];
  try {
    findings.push(...(await checkDatabase(db, systemClock)));
    if (findings.some(isFailed)) return findings;
    findings.push(await checkMigrations(config?.databaseDirectUrl ?? databaseUrl));
    if (config) findings.push(...(await checkDatabaseConnections(config)));
    const isBlocked = findings.some(isFailed);
    findings.push(await checkDisk(db), ...(await checkUpkeep(db)), ...(await checkSharding(db)));
    if (isBlocked) return findings;
    findings.push(...(await checkProcesses(db)), ...(await checkRestoration(db)));
    findings.push(...(await checkFreezes(db)), ...(await checkApprovals(db)));
    if (!config) return findings;
    const context = { db, vault: new Vault(config.secrets), nowMs: systemClock.now() };
    findings.push(...(await checkCredentials(context)), ...(await checkSecretKeys(context)));
    findings.push(...(await checkRotations(context)), ...(await checkGateways(db)));
    const areAppsOpen = !findings.some(
      ({ name, status }) => name === 'secrets' && status === 'fail',
    );
    return areAppsOpen ? [...findings, ...(await checkPlatforms(context))] : findings;
  } catch (error) {
    const params = { why: reasonOf(error) };
    findings.push(found({ name: 'database', status: 'warn', code: 'checksInterrupted', params }));
    return findings;
  } finally {
    await db.close();
  }
}

/**
 * Checks the connections to the databases: their number, a pooler, notifications and the standby.
 */
async function checkDatabaseConnections(config: Config): Promise<Finding[]> {
  const { databaseReadUrl: readUrl } = config;
  return [
    ...(await checkConnections(config)),
    ...(await checkStatements(config)),
    await checkNotifications(config),
    ...(readUrl === config.databaseUrl ? [] : [await checkStandby(readUrl)]),
  ];
}

const labels = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' };

function describe(checks: Finding[]): string {
  const sections = checks.map(({ name, status, code, params }) => ({
    name: subjectIn(language(), name),
    mark: labels[status],
    ...writeFinding({ code, params }, language()),
  }));
  const width = Math.max(...sections.map(({ name }) => widthOf(name)));
  const lines = sections.flatMap(({ name, mark, detail, advice }) => [
    `${mark}  ${padded(name, width)}  ${detail}`,
    ...(advice === '' ? [] : [`${' '.repeat(width + 8)}${advice}`]),
  ]);
  const failed = checks.filter(isFailed).length;
  const warned = checks.filter(({ status }) => status === 'warn').length;
  return [
    ...lines,
    '',
    say('{checks} checks, {failed} failed, {warned} to look at', {
      checks: checks.length,
      failed,
      warned,
    }),
  ].join('\n');
}
