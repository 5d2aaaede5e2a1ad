import { type Dashboard, dashboard } from './grafana.ts';
import { accounts } from './panels/accounts.ts';
import { delivery } from './panels/delivery.ts';
import { overview } from './panels/overview.ts';
import { scale } from './panels/scale.ts';

/** All dashboards of Grafana. */
export const dashboards: readonly Dashboard[] = [
  dashboard('carillon-overview', 'Carillon: overview', overview),
  dashboard('carillon-delivery', 'Carillon: delivery', delivery),
  dashboard('carillon-scale', 'Carillon: queues and scale', scale),
  dashboard('carillon-accounts', 'Carillon: accounts and API', accounts),
];
