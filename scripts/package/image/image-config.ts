/** The configuration of an image (OCI image specification 1.1, config.md), with the health check that Docker reads. */
import { DEBIAN, type Architecture } from '../architecture.ts'

const SECOND_IN_NS = 1e9

/** The user of the image; its group has the same number. Debian gives no such number to a user. */
export const USER_ID = 65532

export interface ImageFacts {
  readonly version: string
  /** Commit of the sources. */
  readonly revision: string
  /** URL of the sources; empty when it is unknown. */
  readonly source: string
  /** Time of the image, in seconds since the epoch. */
  readonly at: number
}

/** Labels of the configuration, and annotations of the index. */
export const labelsOf = ({ version, revision, source }: ImageFacts): Readonly<Record<string, string>> => ({
  'org.opencontainers.image.title': 'deferd',
  'org.opencontainers.image.description': 'SMTP relay with a durable deferred queue',
  'org.opencontainers.image.version': version,
  'org.opencontainers.image.revision': revision,
  'org.opencontainers.image.licenses': 'MIT',
  ...(source === '' ? {} : { 'org.opencontainers.image.source': source }),
})

/** A relay listens at a port, and keeps its queue in a volume. */
const RELAY = {
  ExposedPorts: { '2525/tcp': {} },
  Env: ['PATH=/usr/bin', 'DEFERD_REQUIRE_VOLUME=1'],
  Cmd: ['start'],
  Healthcheck: {
    Test: ['CMD', '/usr/bin/deferd', 'check', '--running'],
    Interval: 30 * SECOND_IN_NS,
    Timeout: 10 * SECOND_IN_NS,
    StartPeriod: 60 * SECOND_IN_NS,
    Retries: 3,
  },
}

/** A lab keeps nothing, and listens at loopback only: it is for the network of the machine. */
const LAB = { Env: ['PATH=/usr/bin'], Cmd: ['lab'] }

interface Contents {
  readonly architecture: Architecture
  /** SHA-256 digests of the layers before compression. */
  readonly layers: readonly string[]
}

const configOf = <T extends object>({ architecture, layers }: Contents, facts: ImageFacts, program: T) => ({
  created: new Date(facts.at * 1000).toISOString(),
  architecture: DEBIAN[architecture],
  os: 'linux',
  ...(architecture === 'arm64' ? { variant: 'v8' } : {}),
  config: {
    User: `${USER_ID}:${USER_ID}`,
    Entrypoint: ['/usr/bin/deferd'],
    WorkingDir: '/',
    Labels: labelsOf(facts),
    StopSignal: 'SIGTERM',
    ...program,
  },
  rootfs: { type: 'layers', diff_ids: layers.map((digest) => `sha256:${digest}`) },
  history: layers.map((_, number) => ({
    created: new Date(facts.at * 1000).toISOString(),
    created_by: `scripts/package/image.ts, layer ${number + 1}`,
  })),
})

/**
 * The configuration of the relay. It has no `Volumes`, for which runtimes make a volume without a name, that `--rm` removes with the mail: without a
 * volume, the program refuses to start.
 */
export const imageConfig = (contents: Contents, facts: ImageFacts) => configOf(contents, facts, RELAY)

/** The configuration of the lab, on the same layers. */
export const labConfig = (contents: Contents, facts: ImageFacts) => configOf(contents, facts, LAB)
