import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Connector } from '../../../../connectors/contract/connector.ts';
import { guideOf } from '../../../../connectors/guides.ts';
import { connectors, credentialsOf } from '../../../../connectors/registry.ts';
import { operatorRoles } from '../../../../shared/domain/admin/operator.ts';
import {
  appOptionsPatch,
  effectiveOptions,
  ownerOptions,
} from '../../../../shared/domain/apps/app.ts';
import { dataKeyOwners, wireNamesOf } from '../../../../shared/domain/labels.ts';
import { outcomes } from '../../../../shared/domain/outcome.ts';
import { queryBody } from '../../../../shared/domain/pushes/body.ts';
import { pushStates } from '../../../../shared/domain/pushes/record.ts';
import type { ApiDeps } from '../../deps.ts';

const schemaOf = (schema: z.ZodType): unknown =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });

/** Facts about the service that never change while it runs. They are computed once. */
const constants = () => ({
  version: packageVersion(),
  connectors: [...connectors.values()].map(describeConnector),
  options: schemaOf(appOptionsPatch),
  defaults: {
    commercial: effectiveOptions('commercial', {}),
    development: effectiveOptions('development', {}),
  },
  ownerOptions: [...ownerOptions],
  push: schemaOf(queryBody),
  dataKeys: [...dataKeyOwners.keys()],
  roles: operatorRoles,
  outcomes,
  states: pushStates,
});

/**
 * Describes the service to the console, so that its forms follow the schemas
 * (protocol/admin-api.md#meta).
 */
export class MetaService {
  readonly #deps: ApiDeps;
  #constants: ReturnType<typeof constants> | undefined;
  /** Returns the digest of the built console. Set by the code that serves the console. */
  buildDigest: () => string | null = () => null;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Returns the description. `address` is the caller's address. */
  read(address: string) {
    this.#constants ??= constants();
    const { config, clock } = this.#deps;
    const now = new Date(clock.now());
    return {
      ...this.#constants,
      build: this.buildDigest(),
      publicUrl: config.publicUrl,
      tryUrl: config.tryUrl ?? null,
      address,
      now,
    };
  }
}

function describeConnector({ id, limits, can, tokenField }: Connector) {
  const [guide, schema] = [guideOf(id), credentialsOf(id)];
  return {
    id,
    wire: wireNamesOf(id),
    dataKeys: [...dataKeyOwners].filter(([, owner]) => owner === id).map(([key]) => key),
    credentials: schema ? schemaOf(schema) : null,
    help: guide ? { source: guide.source, members: guide.members, example: guide.example } : null,
    limits: { ...limits },
    can: { ...can },
    tokenField,
  };
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}
