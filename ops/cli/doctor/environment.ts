import { type Finding, found, reasonOf } from '../../../api/services/operator/doctor/checks.ts';
import {
  type Config,
  ConfigError,
  type Environment,
  environmentWarnings,
  type LocalConfig,
  readConfig,
  readLocalConfig,
} from '../../../shared/config/config.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import { type RunInfo, readRunInfo, readSecrets, type Secrets } from '../../local/data-files.ts';

const name = 'environment';

/** Known parts of the environment with which the processes would start. */
export interface LocalEnvironment {
  findings: Finding[];
  /** Undefined if the environment is invalid. */
  config: Config | undefined;
  databaseUrl: string | undefined;
  url: string;
  metricsUrl: string;
  adminToken: string | undefined;
}

/** Reads the environment. In embedded mode, adds the values of the data directory. */
export async function readLocalEnvironment(env: Environment): Promise<LocalEnvironment> {
  const findings: Finding[] = [];
  const local = tryRead(() => readLocalConfig(env), findings);
  const runInfo = local ? await readRunInfo(local.dataDir) : {};
  const secrets = local ? await secretsOf(local, findings) : {};
  const config = tryRead(
    () => readConfig(completeEnvironment(env, { local, runInfo, secrets })),
    findings,
  );
  for (const warning of environmentWarnings(env))
    findings.push(
      found({ name, status: 'warn', code: 'variableUnknown', params: { why: warning } }),
    );
  if (findings.length === 0) findings.push(found({ name, status: 'ok', code: 'environmentFine' }));
  return {
    findings: withoutDuplicates(findings),
    config,
    databaseUrl: local?.databaseUrl ?? runInfo.databaseUrl,
    url: local?.publicUrl ?? runInfo.url ?? 'http://127.0.0.1:8080',
    metricsUrl: local?.metricsUrl ?? runInfo.metricsUrl ?? 'http://127.0.0.1:9464',
    adminToken: secrets.adminToken,
  };
}

async function secretsOf(local: LocalConfig, findings: Finding[]): Promise<Partial<Secrets>> {
  try {
    return await readSecrets(local.dataDir, local);
  } catch (error) {
    const params = { why: reasonOf(error), folder: local.dataDir };
    findings.push(found({ name, status: 'fail', code: 'dataUnreadable', params }));
    return {};
  }
}

/** Returns the environment variables plus the variables that `npm start` would add. */
function completeEnvironment(
  env: Environment,
  {
    local,
    runInfo,
    secrets,
  }: { local: LocalConfig | undefined; runInfo: Partial<RunInfo>; secrets: Partial<Secrets> },
): Environment {
  return {
    ...env,
    DATABASE_URL: env.DATABASE_URL || local?.databaseUrl || runInfo.databaseUrl,
    CARILLON_ADMIN_TOKEN: env.CARILLON_ADMIN_TOKEN || secrets.adminToken,
    CARILLON_SECRET: env.CARILLON_SECRET || secrets.secret,
    CARILLON_PRIVATE_HOSTS: env.CARILLON_PRIVATE_HOSTS ?? (runInfo.url && loopbackNetworks),
  };
}

function tryRead<T>(read: () => T, findings: Finding[]): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    findings.push(...error.messages.map(findingOf));
    return undefined;
  }
}

function findingOf(message: string): Finding {
  const code = message.includes(' is missing') ? 'variableMissing' : 'variableWrong';
  return found({
    name,
    status: 'fail',
    code,
    params: { why: message, variable: message.split(' ')[0] ?? '' },
  });
}

function withoutDuplicates(findings: Finding[]): Finding[] {
  return findings.filter(
    (one, i) => findings.findIndex((other) => other.detail === one.detail) === i,
  );
}
