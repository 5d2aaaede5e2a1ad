import { dayMs, utcDay } from '../../../../shared/clock.ts';
import {
  type Arrivals,
  countArrivals,
  listArrivalDays,
  maxCounted,
} from '../../../../shared/db/tables/audience.ts';
import { findLastImport } from '../../../../shared/db/tables/console.ts';
import { isPublicAddress } from '../../../../shared/domain/addresses.ts';
import type { ImportReport } from '../../../../shared/domain/admin/import-report.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import type { Code } from '../../../../shared/domain/texts/catalogue.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { routeDevices, type ServedDevices } from '../gateways/profile-detail.ts';

/** Number of days in the report, including today. */
const reportedDays = 14;
/** Time limit of the counts. */
const timeoutMs = 5000;

type StepState = 'done' | 'todo' | 'check';

/** Facts from which the state of the steps is derived. */
interface Facts {
  app: App;
  arrivals: Arrivals;
  routes: ServedDevices[];
  lastImport: ImportReport | undefined;
  publicUrl: string;
}

/** Reports the progress of an app's move into Carillon (protocol/admin-api.md#move-in). */
export class MoveInService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the report. Throws error 404 if the app does not exist, error 124 if the counts take
   * too long.
   */
  async read(appId: string) {
    const { clock, config, db, queries } = this.#deps;
    const app = await requireApp(this.#deps, appId);
    const today = utcDay(clock.now());
    const since = new Date(Date.parse(today) - (reportedDays - 1) * dayMs);
    const { arrivals, days } = await queries.read(
      { app, isMaster: true },
      async (tx) => ({
        arrivals: await countArrivals(tx, appId),
        days: await listArrivalDays(tx, appId, since),
      }),
      { timeoutMs },
    );
    const routed = await routeDevices(this.#deps, app);
    const routes = routed.routes('prod');
    const gateways = routes.map(({ connector, profile, error, devices }) => ({
      connector,
      profile,
      devices,
      problem: error === undefined ? null : reasonText(error),
    }));
    const lastImport = await findLastImport(db, appId);
    const facts = { app, arrivals, routes, lastImport, publicUrl: config.publicUrl };
    const { imported, seen, registered, users } = arrivals;
    return {
      devices: { imported, seen, registered },
      users,
      countsAreLeast: imported + registered >= maxCounted || users >= maxCounted,
      days,
      gateways,
      gatewaysAreLeast: routed.areLeast,
      lastImport: lastImport ?? null,
      steps: stepsOf(facts),
    };
  }
}

type Step = [
  id: string,
  state: StepState,
  code: Code<'moveIn'>,
  params?: Record<string, string | number>,
];

function stepsOf(facts: Facts) {
  const steps = [
    ...dataSteps(facts),
    ...gatewaySteps(facts),
    ...settingSteps(facts),
    ...deviceSteps(facts),
  ];
  return steps.map(([id, state, code, params = {}]) => ({
    id,
    state,
    code,
    params,
  }));
}

function dataSteps({ arrivals, lastImport }: Facts): Step[] {
  const { imported, registered, users } = arrivals;
  const n = imported + registered;
  const refused = lastImport?.refused ?? 0;
  return [
    n + users > 0
      ? ['import', 'done', 'imported', { n, users }]
      : ['import', 'todo', 'nothingHere'],
    ...(refused > 0 ? [['refused', 'todo', 'refused', { n: refused }] satisfies Step] : []),
    ...(lastImport && !lastImport.isFinished
      ? [['unfinished', 'todo', 'unfinished'] satisfies Step]
      : []),
    ['keys', 'check', 'keys'],
  ];
}

function gatewaySteps({ app, routes }: Facts): Step[] {
  const isMissing = ({ error }: ServedDevices) => error !== undefined;
  const n = routes.filter(isMissing).reduce((sum, { devices }) => sum + devices, 0);
  return [
    n > 0 ? ['profiles', 'todo', 'missingProfiles', { n }] : ['profiles', 'done', 'profiles'],
    ...(app.options.hybridPush ? [] : [['hybridPush', 'check', 'hybridPush'] satisfies Step]),
  ];
}

function settingSteps({ app, arrivals: { withEmail, withPhone }, publicUrl }: Facts): Step[] {
  const { functionsUrl } = app.options;
  return [
    ...(withEmail > 0 ? [['mail', 'check', 'mail', { n: withEmail }] satisfies Step] : []),
    ...(withPhone > 0 ? [['sms', 'check', 'sms', { n: withPhone }] satisfies Step] : []),
    functionsUrl
      ? ['functions', 'done', 'functions', { url: functionsUrl }]
      : ['functions', 'check', 'noFunctions'],
    isPublicAddress(publicUrl)
      ? ['address', 'check', 'address', { url: publicUrl }]
      : ['address', 'todo', 'noAddress', { url: publicUrl }],
  ];
}

function deviceSteps({ arrivals: { imported, seen } }: Facts): Step[] {
  const arrived: Step =
    seen > 0 ? ['arrived', 'done', 'arrived', { n: seen }] : ['arrived', 'todo', 'noneArrived'];
  return [['trial', 'check', 'trial'], ...(imported > 0 ? [arrived] : [])];
}
