/** The chart for Kubernetes: its objects for four sets of values, with the types of Kubernetes, and for the image as it is. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { imageConfig, USER_ID } from '../../../scripts/package/image/image-config.ts'
import { QUEUE } from '../../../scripts/package/image/root-files.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { reasonToSkip } from '../../support/required.ts'

const root = join(import.meta.dirname, '../../..')
const chart = join(root, 'contrib/helm/deferd')
const TOOLS = join(root, 'clients/openapi')

/** Libraries of Go in the packages of Debian. */
const GO_PATH = '/usr/share/gocode'

function whyNot(): string | null {
  if (spawnSync('go', ['version']).status !== 0) return 'go cannot be found'
  if (!existsSync(join(GO_PATH, 'src/github.com/Masterminds/sprig'))) return 'golang-github-masterminds-sprig-dev is not installed'
  if (!existsSync(join(GO_PATH, 'src/gopkg.in/yaml.v3'))) return 'golang-gopkg-yaml.v3-dev is not installed'
  return existsSync(join(TOOLS, 'node_modules/yaml')) ? null : 'npm ci --prefix clients/openapi has not installed yaml'
}

const reason = reasonToSkip('clients', whyNot())

const MINUTE = 60_000

interface Rendered {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const IMAGE = { image: { repository: 'registry.example/deferd' } }
const DATABASE = { queue: 'postgresql', postgresql: { secret: 'queue' } }

/** Values of installations. */
const SETS: Readonly<Record<string, object>> = {
  files: IMAGE,
  'files-monitored': {
    ...IMAGE,
    files: { size: '50Gi', storageClass: 'fast' },
    config: { relayhost: '[smtp.example.com]:587', smtp_sasl_password_maps: '/etc/deferd/secrets/passwords' },
    secretFiles: 'smarthost',
    monitoring: { enabled: true },
  },
  postgresql: { ...IMAGE, ...DATABASE, replicas: 3 },
  'postgresql-placed': {
    ...IMAGE,
    ...DATABASE,
    replicas: 2,
    imagePullSecrets: [{ name: 'registry' }],
    networkPolicy: { enabled: true, from: [{ namespaceSelector: { matchLabels: { team: 'mail' } } }] },
    monitoring: { enabled: true, alerts: false },
    service: { type: 'LoadBalancer', port: 2525 },
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'mail', operator: 'Exists', effect: 'NoSchedule' }],
    affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
  },
}

/** Type and module of each kind in the models of Kubernetes. */
const MODELS: Readonly<Record<string, string>> = {
  'apps/v1 StatefulSet': 'kubernetes-models/apps/v1',
  'v1 Service': 'kubernetes-models/v1',
  'networking.k8s.io/v1 NetworkPolicy': 'kubernetes-models/networking.k8s.io/v1',
  'monitoring.coreos.com/v1 ServiceMonitor': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
  'monitoring.coreos.com/v1 PrometheusRule': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
  readonly startupProbe: Probe & { readonly periodSeconds: number; readonly failureThreshold: number }
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly securityContext: object
        readonly containers: readonly [Container]
        readonly volumes: readonly { readonly name: string }[]
      }
    }
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
  }
}

const parseAll = (text: string): readonly KubernetesObject[] => {
  const { parseAllDocuments } = createRequire(join(TOOLS, 'package.json'))('yaml') as {
    readonly parseAllDocuments: (text: string) => readonly { readonly toJS: () => unknown }[]
  }
  return parseAllDocuments(text).map((one) => one.toJS() as KubernetesObject)
}

/** Problems that tsc(1) finds in objects, with the types of their kinds. A literal may not have unknown members. */
function typeProblems(objects: readonly KubernetesObject[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-chart-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const texts = objects.map((object, n) => {
    const model = MODELS[`${object.apiVersion} ${object.kind}`]
    if (model === undefined) throw new Error(`there is no model of ${object.apiVersion} ${object.kind}`)
    return `import type { I${object.kind} as Model${n} } from '${model}'\nexport const object${n}: Model${n} = ${JSON.stringify(object, null, 1)}\n`
  })
  writeFileSync(join(folder, 'objects.ts'), texts.join(''))
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--moduleResolution', 'bundler', '--types', '']
  const found = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...options, join(folder, 'objects.ts')], {
    cwd: folder,
    encoding: 'utf8',
  })
  return `${found.stdout}${found.stderr}`
}

describe.skipIf(reason !== null)(`the chart for Kubernetes${reason === null ? '' : ` (${reason})`}`, () => {
  const work = mkdtempSync(join(tmpdir(), 'deferd-helm-'))
  const program = join(work, 'render')

  beforeAll(() => void built(), 10 * MINUTE)
  afterAll(() => rmSync(work, { recursive: true }))

  function built(): string {
    if (existsSync(program)) return program
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PATH, GOFLAGS: '' }
    const { status, stderr } = spawnSync('go', ['build', '-o', program, join(import.meta.dirname, 'render.go')], { env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`go build: ${stderr}`)
    return program
  }

  function rendered(values: object): Rendered {
    const { status, stdout, stderr } = spawnSync(built(), [chart], { input: JSON.stringify(values), encoding: 'utf8' })
    return { code: status, out: stdout, err: stderr }
  }

  const relay = (values: object): KubernetesObject => {
    const found = parseAll(rendered(values).out).find(({ kind }) => kind === 'StatefulSet')
    if (found === undefined) throw new Error('the chart has no StatefulSet')
    return found
  }

  test.each(Object.entries(SETS))('the objects for %s are those of the golden file', async (name, values) => {
    const { code, out, err } = rendered(values)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    await expect(out).toMatchFileSnapshot(join(import.meta.dirname, `golden/${name}.yaml`))
  })

  test('the objects have the types of Kubernetes, of which a wrong, an unknown and a missing member differ', () => {
    const all = Object.values(SETS).flatMap((values) => parseAll(rendered(values).out))
    expect(new Set(all.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`))).toEqual(new Set(Object.keys(MODELS)))
    expect(typeProblems(all)).toBe('')
    const [one] = all.filter(({ kind }) => kind === 'StatefulSet')
    if (one === undefined) throw new Error('the chart has no StatefulSet')
    const { template: _, ...withoutTemplate } = one.spec
    const problems = typeProblems([
      { ...one, spec: { ...one.spec, replicas: '1' } } as KubernetesObject,
      { ...one, spec: withoutTemplate } as unknown as KubernetesObject,
      { ...one, spec: { ...one.spec, replica: 1 } } as KubernetesObject,
      { ...one, metadatum: {} } as KubernetesObject,
    ])
    expect(problems.match(/error TS/g)).toHaveLength(4)
  })

  test.each([
    ['a second relay on a queue in files', { ...IMAGE, replicas: 2 }, 'replicas is above 1 with a queue in files'],
    ['another queue', { ...IMAGE, queue: 'redis' }, 'queue is "redis": expected files or postgresql'],
    ['a database without its URL', { ...IMAGE, queue: 'postgresql' }, 'postgresql.secret is empty'],
    ['no image', {}, 'image.repository is empty'],
  ])('%s is refused', (_, values, sentence) => {
    expect(rendered(values)).toMatchObject({
      code: 1,
      out: expect.not.stringContaining('kind: StatefulSet'),
      err: expect.stringContaining(sentence),
    })
  })

  test.each(Object.entries(SETS))('with %s, the parameters exist, and ports, user and folders are those of the image', (_, values) => {
    const { spec, ...object } = relay(values)
    const { containers, securityContext, volumes } = spec.template.spec
    const [{ env, ports, volumeMounts }] = containers
    const { config } = imageConfig({ architecture: 'x64', layers: [] }, { version: '1.0.0', revision: '', source: '', at: 0 })
    const own = Object.fromEntries(env.flatMap(({ name, value }) => (value === undefined || name.endsWith('_FILE') ? [] : [[name, value]])))
    const sources = { overrides: [], uid: USER_ID, calledAs: 'deferd', defaultFiles: { folder: '/nonexistent', system: '/nonexistent' } }
    expect(loadConfig({ ...sources, env: own }).given.size, object.kind).toBe(Object.keys(own).length)
    expect(Object.keys(config.ExposedPorts)).toEqual([`${ports.find(({ name }) => name === 'smtp')?.containerPort}/tcp`])
    expect(own['DEFERD_HTTP_LISTEN']).toBe(`0.0.0.0:${ports.find(({ name }) => name === 'http')?.containerPort}`)
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: USER_ID, fsGroup: USER_ID })
    expect(volumeMounts).toContainEqual({ name: 'queue', mountPath: `/${QUEUE}` })
    const there = [...volumes, ...(spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata)].map(({ name }) => name)
    expect(there.toSorted()).toEqual(volumeMounts.map(({ name }) => name).toSorted())
  })

  test.each(Object.entries(SETS))(
    'with %s, the probes are those of deferd, and a node of a shared queue is drained before it ends',
    (name, values) => {
      const [{ readinessProbe, livenessProbe, startupProbe, lifecycle }] = relay(values).spec.template.spec.containers
      const page = readFileSync(join(root, 'docs/monitoring.md'), 'utf8')
      expect([readinessProbe, livenessProbe, startupProbe].map(({ httpGet }) => httpGet)).toEqual([
        { path: '/readyz', port: 'http' },
        { path: '/livez', port: 'http' },
        { path: '/livez', port: 'http' },
      ])
      for (const path of ['/readyz', '/livez']) expect(page).toContain(`| \`${path}\` `)
      expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBe(60)
      expect(lifecycle?.preStop.exec.command).toEqual(name.startsWith('postgresql') ? ['/usr/bin/deferd', 'node', 'drain'] : undefined)
    },
  )
})
