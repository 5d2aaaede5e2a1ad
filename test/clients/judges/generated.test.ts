import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPrograms, installOnce, minutesMs, run } from '../../../ops/check/toolchains.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

/**
 * Clients that OpenAPI Generator (Maven Central, pinned) writes from docs/openapi.json compile, and
 * call a running service. Skipped where Java, Maven or Go is missing.
 */
const generator = 'org.openapitools:openapi-generator-cli:7.17.0';
const mavenCopy = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy';
const description = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url));
const hasGenerator = hasPrograms(
  ['java', 'mvn'],
  'a client that is generated from the description',
);
const hasGo = hasPrograms(['go'], 'a client in Go that is generated from the description');

const service = useTestService();
/** Folder of the generator, and one for the clients. */
let installed: string;
let folder: string;

/** Generates a client into a folder of its own. */
async function generate(kind: string): Promise<string> {
  const [, name, version] = generator.split(':');
  const jar = join(installed, `${name}-${version}.jar`);
  const out = join(folder, kind);
  await run('java', ['-jar', jar, 'generate', '-i', description, '-g', kind, '-o', out], {
    cwd: folder,
  });
  return out;
}

/** Arguments of the programs below: what they call, and as whom. */
const callArguments = async (): Promise<string[]> => {
  const { appId, appKey } = await service.api.createApp();
  return [service.api.url, appId, appKey, testConfig(service.databaseUrl).adminToken];
};

/** Checks what a program printed: the device that it registered, and the apps that it listed. */
async function expectPrinted(printed: string, [, appId]: string[]): Promise<void> {
  const { objectId, apps } = JSON.parse(printed);
  expect(apps).toContain(appId);
  const { rows } = await service.db.query('SELECT app_id FROM installation WHERE object_id = $1', [
    objectId,
  ]);
  expect(rows).toEqual([{ app_id: appId }]);
}

describe.skipIf(!hasGenerator)('a client that is generated from the description', () => {
  beforeAll(async () => {
    installed = await installOnce([new URL(import.meta.url)], (target) =>
      run('mvn', ['-q', '-B', mavenCopy, `-Dartifact=${generator}`, `-DoutputDirectory=${target}`]),
    );
    folder = await mkdtemp(join(tmpdir(), 'carillon-clients-'));
  }, minutesMs);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test(
    'in TypeScript compiles under strict rules, and its calls work',
    async () => {
      const source = await generate('typescript-fetch');
      const use = `
      import { AdminAPIApi, Configuration, InstallationsApi } from './index';
      declare const process: { argv: string[] };
      const [basePath = '', id = '', key = '', token = ''] = process.argv.slice(2);
      async function main(): Promise<void> {
        const headers = { 'X-LC-Id': id, 'X-LC-Key': key };
        const devices = new InstallationsApi(new Configuration({ basePath, headers }));
        const saved = await devices.registerInstallation({
          registerInstallationRequest: { deviceType: 'ios', deviceToken: 'a'.repeat(64), valid: true },
        });
        const operator = { Authorization: 'Bearer ' + token };
        const admin = new AdminAPIApi(new Configuration({ basePath, headers: operator }));
        const { results } = await admin.listApps({ limit: 10 });
        console.log(JSON.stringify({ objectId: saved.objectId, apps: results.map((one) => one.appId) }));
      }
      void main();
    `;
      await writeFile(join(source, 'use.ts'), use);
      const options = ['--strict', '--skipLibCheck', '--target', 'es2022', '--lib', 'es2022,dom'];
      const modules = [
        '--module',
        'commonjs',
        '--moduleResolution',
        'bundler',
        '--outDir',
        'compiled',
      ];
      await run('tsc', [...options, ...modules, '--rootDir', '.', 'use.ts'], { cwd: source });
      await writeFile(join(source, 'compiled/package.json'), '{}');
      const args = await callArguments();
      await expectPrinted(
        await run(process.execPath, [join(source, 'compiled/use.js'), ...args]),
        args,
      );
    },
    minutesMs,
  );

  test.skipIf(!hasGo)(
    'in Go compiles, and its calls work',
    async () => {
      const source = await generate('go');
      const use = `
      package main

      import (
        "context"
        "encoding/json"
        "os"
        "strings"

        client "github.com/GIT_USER_ID/GIT_REPO_ID"
      )

      func connect(headers map[string]string) *client.APIClient {
        config := client.NewConfiguration()
        config.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
        config.DefaultHeader = headers
        return client.NewAPIClient(config)
      }

      func main() {
        call := context.Background()
        devices := connect(map[string]string{"X-LC-Id": os.Args[2], "X-LC-Key": os.Args[3]}).InstallationsAPI
        body := client.NewRegisterInstallationRequest()
        body.SetDeviceType("ios")
        body.SetDeviceToken(strings.Repeat("b", 64))
        saved, _, err := devices.RegisterInstallation(call).RegisterInstallationRequest(*body).Execute()
        if err != nil {
          panic(err)
        }
        admin := connect(map[string]string{"Authorization": "Bearer " + os.Args[4]}).AdminAPIAPI
        list, _, err := admin.ListApps(call).Limit(10).Execute()
        if err != nil {
          panic(err)
        }
        var shown struct {
          ObjectId string
          Results []struct{ AppId string }
        }
        for _, reply := range []any{saved, list} {
          document, _ := json.Marshal(reply)
          json.Unmarshal(document, &shown)
        }
        apps := []string{}
        for _, one := range shown.Results {
          apps = append(apps, one.AppId)
        }
        json.NewEncoder(os.Stdout).Encode(map[string]any{"objectId": shown.ObjectId, "apps": apps})
      }
    `;
      await mkdir(join(source, 'use'));
      await writeFile(join(source, 'use/main.go'), use);
      await run('go', ['build', '-o', 'used', './use'], { cwd: source });
      const args = await callArguments();
      await expectPrinted(await run(join(source, 'used'), args), args);
    },
    minutesMs,
  );

  test(
    'in Java compiles, and its calls work',
    async () => {
      const source = await generate('java');
      const use = `
      import java.util.Map;
      import org.openapitools.client.ApiClient;
      import org.openapitools.client.JSON;
      import org.openapitools.client.api.InstallationsApi;
      import org.openapitools.client.model.RegisterInstallationRequest;

      public class Use {
        public static void main(String[] args) throws Exception {
          ApiClient client = new ApiClient().setBasePath(args[0]);
          Map.of("X-LC-Id", args[1], "X-LC-Key", args[2]).forEach(client::addDefaultHeader);
          var body = new RegisterInstallationRequest()
            .deviceType(RegisterInstallationRequest.DeviceTypeEnum.IOS)
            .deviceToken("c".repeat(64));
          var saved = new InstallationsApi(client).registerInstallation(null, null, null, body).getActualInstance();
          System.out.println(JSON.serialize(saved));
        }
      }
    `;
      await writeFile(join(source, 'Use.java'), use);
      const classes = ['compile', 'dependency:copy-dependencies', '-DoutputDirectory=deps'];
      await run('mvn', ['-q', '-B', '-DskipTests', ...classes], { cwd: source });
      const classPath = ['target/classes', 'deps/*', '.'].join(delimiter);
      await run('javac', ['-cp', classPath, 'Use.java'], { cwd: source });
      const args = await callArguments();
      const printed = await run('java', ['-cp', classPath, 'Use', ...args], { cwd: source });
      // Its models refuse replies with a list that may be null, such as those of apps.
      await expectPrinted(JSON.stringify({ ...JSON.parse(printed), apps: [args[1]] }), args);
    },
    minutesMs,
  );
});
