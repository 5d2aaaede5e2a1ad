// The steps of `npm test`: runs every check in turn, and prints what failed and the total in the
// last lines. With `--browser` it also runs the flows of the console in Chromium, with
// `--monitoring` the dashboards against a Prometheus, with `--upgrade` the last release together
// with this version, with `--fleet` several processes of the service that join, restart or are
// killed during pushes, and the ways to start them, with `--load` an api under the load of a
// hostile app. Clients, function hosts and judges that others wrote have a step of their own;
// those whose toolchain is missing are skipped.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  addTallies,
  formatTally,
  oneFailure,
  readVitestReport,
  StepRunner,
  type Tally,
} from './step-runner.ts';

/** Check: a command that counts as one check, or one that runs tests and writes a report. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** File of Vitest's JSON report. */
  readonly reportPath?: string;
}

/** Returns a check that runs Vitest with its progress on standard output and a report in a file. */
function testStep(name: string, reportDir: string, args: readonly string[] = []): Step {
  const reportPath = join(reportDir, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`];
  return { name, command: ['vitest', 'run', ...args, ...reporters], reportPath };
}

/**
 * Folders of the tests that an option adds: they need programs that npm does not install, the
 * history of the repository, or minutes.
 */
const optional = {
  browser: 'test/console/flows',
  monitoring: 'test/monitoring',
  upgrade: 'test/upgrade',
  fleet: 'test/fleet',
  load: 'test/api/load',
};

const clients = 'test/clients';

function listSteps(reportDir: string, options: readonly string[]): Step[] {
  const added = Object.entries(optional).filter(([name]) => options.includes(`--${name}`));
  const others = [...Object.values(optional), clients];
  const excluded = others.flatMap((folder) => ['--exclude', `${folder}/**`]);
  return [
    { name: 'lint', command: ['npm', 'run', '--silent', 'lint'] },
    { name: 'types', command: ['npm', 'run', '--silent', 'types'] },
    { name: 'arrows', command: ['npm', 'run', '--silent', 'arrows'] },
    testStep('tests', reportDir, excluded),
    testStep('clients', reportDir, [clients]),
    ...added.map(([name, folder]) => testStep(name, reportDir, [folder])),
  ];
}

async function runStep(runner: StepRunner, step: Step): Promise<Tally> {
  console.log(`\n── ${step.name}`);
  const startedAtMs = performance.now();
  const exitCode = await runner.run(step.command);
  const tally =
    step.reportPath === undefined
      ? tallyOfCommand(step.name, exitCode)
      : await readVitestReport(step.reportPath, exitCode);
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(`── ${step.name}: ${tally.failed === 0 ? 'passed' : 'FAILED'} in ${seconds} s`);
  return tally;
}

const tallyOfCommand = (name: string, exitCode: number): Tally =>
  exitCode === 0 ? { passed: 1, failed: 0, skipped: 0, failures: [] } : oneFailure(name);

const reportDir = await mkdtemp(join(tmpdir(), 'carillon-check-'));
const runner = new StepRunner();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => runner.stop());
try {
  const tallies: Tally[] = [];
  for (const step of listSteps(reportDir, process.argv)) {
    if (!runner.isStopped) tallies.push(await runStep(runner, step));
  }
  if (runner.isStopped) console.log('\nInterrupted: not everything was checked.');
  const total = addTallies(tallies);
  for (const failure of total.failures) console.log(`\nFailed: ${failure}`);
  console.log(`\n${formatTally(total)}`);
  process.exitCode = total.failed > 0 || runner.isStopped ? 1 : 0;
} finally {
  await rm(reportDir, { recursive: true, force: true });
}
