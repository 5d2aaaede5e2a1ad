import type { Shell } from '../../report.ts';

/** `carillon doctor`: looks at everything a service needs and says what to do. */
export function addDoctorCommand({ program, act }: Shell): void {
  program
    .command('doctor')
    .description('look at environment, database, secrets, credentials and processes, and say what to do')
    .action(
      act(async () => {
        // Database and gateways are loaded for nobody else.
        const { runChecks } = await import('../../doctor/run-checks.ts');
        return runChecks();
      }),
    );
}
