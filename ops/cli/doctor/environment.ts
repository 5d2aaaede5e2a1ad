import {
  type Config,
  ConfigError,
  type Environment,
  environmentWarnings,
  type LocalConfig,
  readConfig,
  readLocalConfig,
} from '../../../shared/config.ts';
import { readSecrets, type Secrets } from '../../local/secrets.ts';
import { readWhere, type Where } from '../../local/where.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

/** What the processes would start with, as far as it is known. */
export interface Surroundings {
  findings: Finding[];
  /** There only when the environment is fit to start. */
  config: Config | undefined;
  databaseUrl: string | undefined;
  url: string;
  metricsUrl: string;
  adminToken: string | undefined;
}

/** Reads the environment, and what the data directory adds to it under the embedded mode. */
export async function readSurroundings(env: Environment): Promise<Surroundings> {
  const findings: Finding[] = [];
  const local = attempt(() => readLocalConfig(env), findings);
  const where = local ? await readWhere(local.dataDir) : {};
  const secrets = local ? await secretsOf(local, findings) : {};
  const config = attempt(() => readConfig(completeEnvironment(env, { local, where, secrets })), findings);
  for (const warning of environmentWarnings(env))
    findings.push(warn('environment', warning, 'Correct the name, or take the variable away.'));
  if (findings.length === 0) findings.push(ok('environment', 'every variable is as expected'));
  return {
    findings: withoutRepeats(findings),
    config,
    databaseUrl: local?.databaseUrl ?? where.databaseUrl,
    url: local?.publicUrl ?? where.url ?? 'http://127.0.0.1:8080',
    metricsUrl: local?.metricsUrl ?? where.metricsUrl ?? 'http://127.0.0.1:9464',
    adminToken: secrets.adminToken,
  };
}

async function secretsOf(local: LocalConfig, findings: Finding[]): Promise<Partial<Secrets>> {
  try {
    return await readSecrets(local.dataDir, local);
  } catch (error) {
    findings.push(fail('environment', reasonOf(error), `Look at the files in ${local.dataDir}.`));
    return {};
  }
}

/** The variables of the process, and those that `npm start` would add. */
function completeEnvironment(
  env: Environment,
  {
    local,
    where,
    secrets,
  }: { local: LocalConfig | undefined; where: Partial<Where>; secrets: Partial<Secrets> },
): Environment {
  return {
    ...env,
    DATABASE_URL: env.DATABASE_URL || local?.databaseUrl || where.databaseUrl,
    CARILLON_ADMIN_TOKEN: env.CARILLON_ADMIN_TOKEN || secrets.adminToken,
    CARILLON_SECRET: env.CARILLON_SECRET || secrets.secret,
  };
}

function attempt<T>(read: () => T, findings: Finding[]): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    findings.push(...error.problems.map((problem) => fail('environment', problem, adviceFor(problem))));
    return undefined;
  }
}

function adviceFor(problem: string): string {
  const name = problem.split(' ')[0] ?? '';
  const isMissing = problem.includes(' is missing');
  return isMissing
    ? `Set ${name}, or run \`npm start\` in this folder, which brings what is missing.`
    : `Correct ${name}.`;
}

function withoutRepeats(findings: Finding[]): Finding[] {
  return findings.filter((one, i) => findings.findIndex((other) => other.detail === one.detail) === i);
}
