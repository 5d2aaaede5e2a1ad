import type { Shell } from '../../report.ts';

/** Adds `carillon doctor`: checks the installation and recommends actions. */
export function addDoctorCommand({ program, act }: Shell): void {
  program
    .command('doctor')
    .description('check environment, database, secrets, credentials and processes, and recommend actions')
    .action(
      act(async () => {
        // Loaded here, because other commands need neither database nor gateways.
        const { runChecks } = await import('../../doctor/run-checks.ts');
        return runChecks();
      }),
    );
}
