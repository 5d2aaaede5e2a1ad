/** Generated files of all manifests: the path below this folder and the text. */
import { stringify } from 'yaml';
import { base } from './manifests/base.ts';
import { overlays } from './manifests/overlays.ts';

const header = '# Written by `npm run write` from manifests/.\n';
/** YAML 1.1, because kubectl reads an unquoted `on` as true. */
const style = { version: '1.1', lineWidth: 120, aliasDuplicateObjects: false } as const;
const yamlOf = (objects: readonly object[]): string =>
  header + objects.map((object) => stringify(object, style)).join('---\n');

const kustomization = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization' };

/** Returns the text of each file by its path. */
export function listFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const [name, objects] of Object.entries(base)) files.set(`base/${name}`, yamlOf(objects));
  const names = Object.keys(base);
  const images = [{ name: 'carillon', newTag: 'latest' }];
  files.set('base/kustomization.yaml', yamlOf([{ ...kustomization, resources: names, images }]));
  for (const [name, { resources = {}, patches = [], replicas }] of Object.entries(overlays)) {
    const folder = `overlays/${name}`;
    for (const [file, objects] of Object.entries(resources))
      files.set(`${folder}/${file}`, yamlOf(objects));
    patches.forEach((patch, i) => {
      files.set(`${folder}/patch-${i + 1}.yaml`, yamlOf([patch]));
    });
    const own = {
      resources: ['../../base', ...Object.keys(resources)],
      ...(patches.length > 0
        ? { patches: patches.map((_, i) => ({ path: `patch-${i + 1}.yaml` })) }
        : {}),
      ...(replicas ? { replicas } : {}),
    };
    files.set(`${folder}/kustomization.yaml`, yamlOf([{ ...kustomization, ...own }]));
  }
  return files;
}
