import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../shared/clock.ts';
import { alertGroups } from '../alerts.ts';
import { type FastPrometheus, prometheusPath, startFastPrometheus } from './prometheus.ts';
import { scenes } from './scenes.ts';
import { openStage, type Scene, type Stage } from './stage.ts';

// `npm run make-faults [-- <alert> …]`: causes the fault of each alert, or of the named alerts, in
// a separate service. Checks that a Prometheus with the rules of this folder fires the alert. One
// minute in the rules lasts one second. Exits with 0 if Prometheus is not installed.

const timeoutMs = 90_000;

/** Returns the alerts of a scene that are firing. */
async function firingOf(
  { alerts, labels = {} }: Scene,
  prometheus: FastPrometheus,
): Promise<Set<string>> {
  const isOfScene = (metric: Record<string, string>) =>
    Object.entries(labels).every(([label, value]) => (metric[label] ?? value) === value);
  const names = (await prometheus.firing())
    .filter(isOfScene)
    .map(({ alertname = '' }) => alertname);
  return new Set(names.filter((name) => alerts.includes(name)));
}

/** Waits until no alert of a scene fires because of an earlier fault. */
async function untilSilent(scene: Scene, prometheus: FastPrometheus): Promise<void> {
  const endsAtMs = performance.now() + timeoutMs;
  for (let firing = await firingOf(scene, prometheus); firing.size > 0; ) {
    if (performance.now() > endsAtMs)
      throw new Error(`${[...firing]} fires before its fault is made`);
    await sleep(200);
    firing = await firingOf(scene, prometheus);
  }
}

/**
 * Waits until each alert of a scene has fired at least once. Returns the alerts that did not fire
 * in time.
 */
async function untilFired(prometheus: FastPrometheus, scene: Scene): Promise<string[]> {
  const unseen = new Set(scene.alerts);
  const startedAtMs = performance.now();
  while (unseen.size > 0 && performance.now() - startedAtMs < timeoutMs) {
    const firing = await firingOf(scene, prometheus);
    const seconds = Math.round((performance.now() - startedAtMs) / 1000);
    for (const name of unseen) {
      if (!firing.has(name)) continue;
      console.log(`ok  ${name} fires after ${seconds} s`);
      unseen.delete(name);
    }
    await sleep(200);
  }
  for (const name of unseen) console.log(`not ok  ${name} is silent`);
  return [...unseen];
}

/** Runs a scene. Returns the alerts that did not fire. */
async function play(scene: Scene, stage: Stage, prometheus: FastPrometheus): Promise<string[]> {
  await untilSilent(scene, prometheus);
  const controller = new AbortController();
  const running = scene.run(stage, controller.signal);
  // Ends the wait if the fault cannot be caused.
  const failed = running.then(() => new Promise<never>(() => undefined));
  try {
    return await Promise.race([untilFired(prometheus, scene), failed]);
  } catch (error) {
    console.log(
      `not ok  ${scene.alerts.join(', ')}: ${error instanceof Error ? error.message : error}`,
    );
    return [...scene.alerts];
  } finally {
    controller.abort();
    await running.catch(() => undefined);
  }
}

/**
 * Returns the scenes of the requested alerts. Throws an error for the operator if a name is
 * unknown.
 */
function chooseScenes(names: readonly string[]): readonly Scene[] {
  const known = Object.values(alertGroups).flatMap((alerts) => alerts.map(({ name }) => name));
  const provoked = new Set(scenes.flatMap(({ alerts }) => alerts));
  const forgotten = known.filter((name) => !provoked.has(name));
  if (forgotten.length > 0) throw new Error(`no fault is written for ${forgotten.join(', ')}`);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no alert is named ${unknown.join(', ')}`);
  return names.length === 0
    ? scenes
    : scenes.filter(({ alerts }) => alerts.some((name) => names.includes(name)));
}

async function makeFaults(names: readonly string[]): Promise<void> {
  const chosen = chooseScenes(names);
  const folder = await mkdtemp(join(tmpdir(), 'carillon-faults-'));
  await chmod(folder, 0o755);
  try {
    const stage = await openStage(folder);
    try {
      const prometheus = await startFastPrometheus(folder, stage.targets);
      try {
        const silent: string[] = [];
        const playAll = async (some: readonly Scene[]) => {
          for (const scene of some) silent.push(...(await play(scene, stage, prometheus)));
        };
        await Promise.all([
          playAll(chosen.filter(({ isIndependent }) => isIndependent)),
          playAll(chosen.filter(({ isIndependent }) => !isIndependent)),
        ]);
        if (silent.length > 0) throw new Error(`these do not fire: ${silent.join(', ')}`);
      } finally {
        await prometheus.stop();
      }
    } finally {
      await stage.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

if (prometheusPath === undefined) console.log('Prometheus is not installed: no faults are made.');
else await makeFaults(process.argv.slice(2));
