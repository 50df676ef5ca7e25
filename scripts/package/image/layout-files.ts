/** Writes an OCI image layout (OCI image specification 1.1, image-layout.md): blobs by digest, and an index of the architectures. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEBIAN, type Architecture } from '../architecture.ts'
import { gzipped } from '../tar.ts'
import { imageConfig, labConfig, labelsOf, type ImageFacts } from './image-config.ts'

const TYPE = 'application/vnd.oci.image'

/** Programs of which there are images. */
const PROGRAMS = ['relay', 'lab'] as const
type Program = (typeof PROGRAMS)[number]

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

interface Platform {
  readonly architecture: string
  readonly os: string
  readonly variant?: string
}

/** An image before it is written. `layers` are archives without compression. */
export interface Image {
  readonly architecture: Architecture
  readonly layers: readonly Buffer[]
}

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex')

function addBlob(out: string, mediaType: string, content: Buffer): Descriptor {
  const digest = sha256(content)
  writeFileSync(join(out, 'blobs/sha256', digest), content, { mode: 0o644 })
  return { mediaType: `${TYPE}.${mediaType}`, digest: `sha256:${digest}`, size: content.length }
}

const jsonBlob = (out: string, mediaType: string, value: object): Descriptor => addBlob(out, mediaType, Buffer.from(JSON.stringify(value)))

type PlatformManifest = Descriptor & { readonly platform: Platform }

/** Adds the manifest of each program, on layers that are written once. */
function addImage(out: string, { architecture, layers }: Image, facts: ImageFacts): Readonly<Record<Program, PlatformManifest>> {
  const contents = { architecture, layers: layers.map(sha256) }
  const blobs = layers.map((layer) => addBlob(out, 'layer.v1.tar+gzip', gzipped(layer, 6)))
  const platform = { architecture: DEBIAN[architecture], os: 'linux', ...(architecture === 'arm64' ? { variant: 'v8' } : {}) }
  const manifest = (config: object): PlatformManifest => ({
    ...jsonBlob(out, 'manifest.v1+json', {
      schemaVersion: 2,
      mediaType: `${TYPE}.manifest.v1+json`,
      config: jsonBlob(out, 'config.v1+json', config),
      layers: blobs,
      annotations: labelsOf(facts),
    }),
    platform,
  })
  return { relay: manifest(imageConfig(contents, facts)), lab: manifest(labConfig(contents, facts)) }
}

const named = (descriptor: Descriptor, name: string) => ({ ...descriptor, annotations: { 'org.opencontainers.image.ref.name': name } })

/**
 * Writes the layout into the folder `out`. The image of the relay has the version as its name, that of the lab `VERSION-lab`. That of one architecture
 * has it at the end, as `VERSION-amd64`, for programs that take no index of architectures.
 */
export function writeLayout(out: string, images: Iterable<Image>, facts: ImageFacts): void {
  mkdirSync(join(out, 'blobs/sha256'), { recursive: true })
  const added: Readonly<Record<Program, PlatformManifest>>[] = []
  for (const image of images) added.push(addImage(out, image, facts))
  const mediaType = `${TYPE}.index.v1+json`
  const manifests = PROGRAMS.flatMap((program) => {
    const own = added.map((one) => one[program])
    const name = program === 'relay' ? facts.version : `${facts.version}-${program}`
    const list = jsonBlob(out, 'index.v1+json', { schemaVersion: 2, mediaType, manifests: own, annotations: labelsOf(facts) })
    return [named(list, name), ...own.map((one) => named(one, `${name}-${one.platform.architecture}`))]
  })
  writeFileSync(join(out, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType, manifests }), { mode: 0o644 })
  writeFileSync(join(out, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }), { mode: 0o644 })
}
