import { command } from '../../command.ts';

/** `carillon doctor`: checks the installation and recommends actions. */
export const doctorCommand = command(
  'doctor',
  'check environment, database, secrets, credentials and processes, and recommend actions',
  {
    takes: {},
    run: async () => {
      // Loaded here, because other commands need neither database nor gateways.
      const { runChecks } = await import('../../doctor/run-checks.ts');
      return runChecks();
    },
  },
);
