import { listProcesses, type SeenProcess } from '../../../../shared/db/tables/processes/processes.ts';
import { processGoneMs } from '../../../../shared/db/tables/processes/register.ts';
import type { ApiDeps } from '../../deps.ts';
import { checkCredentials } from './credentials.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';
import { checkGateways } from './gateways.ts';
import { checkPlatforms } from './platforms.ts';
import { checkRestoration } from './restoration.ts';

/** Apps whose credentials are looked at: each of their profiles is decrypted. */
const maxApps = 1000;

/** Finding as the admin API shows it (protocol/admin-api.md#doctor). */
export interface ShownFinding {
  level: Finding['status'];
  subject: string;
  sentence: string;
  remedy: string;
}

/** Runs the checks of `carillon doctor` that need only the database, and lists the running processes. */
export class DoctorService {
  readonly #deps: ApiDeps;
  #running: Promise<ShownFinding[]> | undefined;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists the running processes. */
  processes(): Promise<SeenProcess[]> {
    return listProcesses(this.#deps.admissionDb, processGoneMs);
  }

  /** Runs the checks once for all concurrent callers. */
  check(): Promise<ShownFinding[]> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<ShownFinding[]> {
    const { admissionDb: db, clock, vault } = this.#deps;
    const context = { db, vault, nowMs: clock.now(), maxApps };
    const found: Finding[] = [];
    const checks = [
      async () => checkProcesses(await this.processes()),
      () => checkRestoration(db),
      () => checkCredentials(context),
      () => checkGateways(db),
      () => checkPlatforms(context),
    ];
    // One after the other: they are for an operator who waits, beside calls that must not.
    for (const check of checks) found.push(...(await check().catch(interrupted)));
    return found.map(shown);
  }
}

const interrupted = (error: unknown): Finding[] => [
  warn('database', `a check was interrupted: ${reasonOf(error)}`, 'Run it again.'),
];

const shown = ({ name, status, detail, advice }: Finding): ShownFinding => ({
  level: status,
  subject: name,
  sentence: detail,
  remedy: advice,
});

/** Checks that a dispatcher runs, and that all processes have one version. */
function checkProcesses(processes: readonly SeenProcess[]): Finding[] {
  const versions = [...new Set(processes.map(({ version }) => version))];
  const ofKind = (kind: SeenProcess['kind']) => processes.filter((one) => one.kind === kind).length;
  const dispatchers = ofKind('dispatcher');
  const counts = `${ofKind('api')} api and ${dispatchers} dispatcher processes run`;
  return [
    dispatchers === 0
      ? fail('processes', `${counts}: nothing is sent`, 'Start a dispatcher: `carillon dispatcher`.')
      : ok('processes', counts),
    ...(versions.length > 1
      ? [
          warn(
            'versions',
            `they have several versions: ${versions.join(', ')}`,
            'Finish the upgrade: restart those with the older one.',
          ),
        ]
      : []),
  ];
}
