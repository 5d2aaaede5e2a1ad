/**
 * Checks the generated manifests: the files match `manifests/`, kustomize renders every overlay,
 * the models of Kubernetes and its operators accept every rendered object, and the ingress routes
 * all public paths but no operator paths.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as cnpg from '@kubernetes-models/cloudnative-pg/postgresql.cnpg.io/v1';
import * as keda from '@kubernetes-models/keda/keda.sh/v1alpha1';
import * as monitoring from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import * as apps from 'kubernetes-models/apps/v1';
import * as batch from 'kubernetes-models/batch/v1';
import * as networking from 'kubernetes-models/networking.k8s.io/v1';
import * as policy from 'kubernetes-models/policy/v1';
import * as core from 'kubernetes-models/v1';
import { parseAllDocuments } from 'yaml';
import { listFiles } from './files.ts';
import { publicPaths } from './manifests/base.ts';
import { overlays } from './manifests/overlays.ts';

type Model = new (data: never) => { validate(): void };
const modules: Record<string, Record<string, unknown>> = {
  'apps/v1': apps,
  'batch/v1': batch,
  'networking.k8s.io/v1': networking,
  'policy/v1': policy,
  v1: core,
  'postgresql.cnpg.io/v1': cnpg,
  'keda.sh/v1alpha1': keda,
  'monitoring.coreos.com/v1': monitoring,
};

const problems: string[] = [];

for (const [path, text] of listFiles()) {
  const file = new URL(path, import.meta.url);
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text)
    problems.push(`${path} is not written: npm run write`);
}

/** Validates an object against the model of its kind. */
function validate(
  object: { apiVersion: string; kind: string; metadata: { name: string } },
  where: string,
): void {
  const model = modules[object.apiVersion]?.[object.kind] as Model | undefined;
  if (!model) {
    problems.push(`${where}: no model of ${object.apiVersion} ${object.kind}`);
    return;
  }
  try {
    new model(object as never).validate();
  } catch (error) {
    problems.push(
      `${where}: ${object.kind} ${object.metadata.name}: ${error instanceof Error ? error.message : error}`,
    );
  }
}

let rendered = 0;
function render(folder: string): void {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  const text = execFileSync('kubectl', ['kustomize', path], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const document of parseAllDocuments(text)) {
    validate(document.toJS(), folder);
    rendered += 1;
  }
}

const hasKubectl = spawnSync('kubectl', ['version', '--client']).error === undefined;
if (hasKubectl)
  for (const folder of ['base', ...Object.keys(overlays).map((name) => `overlays/${name}`)])
    render(folder);
else console.log('kubectl is not installed: the overlays are not rendered.');

const isServed = (path: string) =>
  publicPaths.some(
    (prefix) => path === prefix || path.startsWith(prefix === '/' ? prefix : `${prefix}/`),
  );
const { paths } = JSON.parse(
  readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'),
);
for (const path of Object.keys(paths)) {
  const isOperators =
    ['/healthz', '/readyz', '/metrics', '/'].includes(path) || path.startsWith('/console');
  if (isServed(path) === isOperators)
    problems.push(`ingress: ${path} ${isOperators ? 'is' : 'is not'} public`);
}

for (const problem of problems) console.error(problem);
console.log(`kubernetes: ${rendered} rendered objects, ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;
