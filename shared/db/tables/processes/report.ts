import type { Clock } from '../../../clock.ts';
import type { Vault } from '../../../crypto.ts';
import type { Metrics } from '../../../metrics.ts';
import type { ProcessReport } from './processes.ts';

/** Returns what this process says about itself in the register of processes. */
export async function reportProcess(metrics: Metrics, clock: Clock, vault: Vault): Promise<ProcessReport> {
  const nowMs = clock.now();
  const maxFiles = (await metrics.registry.getSingleMetric('process_max_fds')?.get())?.values[0]?.value;
  const { values } = await metrics.dutyLastSuccess.get();
  const ages = values.map(({ labels, value }) => [String(labels.duty), nowMs / 1000 - value]);
  return { nowMs, maxFiles: maxFiles ?? null, duties: Object.fromEntries(ages), secretKeys: vault.keyIds };
}
