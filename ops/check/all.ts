// Runs the steps of `npm test` one after the other. The last lines of its output list the failures
// and the total.
//
// Options add steps:
//
// - `--browser`: the console in Chromium.
// - `--monitoring`: the dashboards against a Prometheus.
// - `--upgrade`: the last release together with this version.
// - `--fleet`: several processes of the service that start, restart or are killed during pushes.
// - `--load`: an api while a hostile app loads it.
//
// The clients, function hosts and validators of other projects are tested in a separate step. A
// test is skipped if its toolchain is not installed.
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

/** Step of `npm test`: a command that counts as one check, or a test run that writes a report. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** File of Vitest's JSON report. */
  readonly reportPath?: string;
}

/** Returns a step that runs Vitest. Progress goes to standard output, results to a report file. */
function testStep(name: string, reportDir: string, args: readonly string[] = []): Step {
  const reportPath = join(reportDir, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`];
  return { name, command: ['vitest', 'run', ...args, ...reporters], reportPath };
}

/**
 * Test folders that need an option. They need programs that npm does not install, the Git history,
 * or several minutes.
 */
const optional = {
  browser: 'test/console/flows',
  monitoring: 'test/monitoring',
  upgrade: 'test/upgrade',
  fleet: 'test/fleet',
  load: 'test/api/load',
};

const clients = 'test/clients';

/**
 * Arguments of an optional folder for Vitest. A browser has several processes of its own: with five
 * at once, the tests of the console take longer than with three, and pages take 20 s to load.
 */
const argsOf: Readonly<Record<string, readonly string[]>> = { browser: ['--maxWorkers=3'] };

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
    ...added.map(([name, folder]) => testStep(name, reportDir, [folder, ...(argsOf[name] ?? [])])),
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
