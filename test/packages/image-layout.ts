/** Reads an OCI image layout as a runtime does: from the index to the layers, with each digest. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import type { imageConfig } from '../../scripts/package/image/image-config.ts'

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: { readonly architecture: string; readonly os: string }
  readonly annotations?: Readonly<Record<string, string>>
}

interface Index {
  readonly manifests: readonly Descriptor[]
}

interface Manifest {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

export interface ReadImage {
  readonly architecture: string
  readonly config: ReturnType<typeof imageConfig>
  /** Paths of the compressed layers. */
  readonly layers: readonly string[]
}

const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`

export interface ReadLayout {
  readonly relay: readonly ReadImage[]
  readonly lab: readonly ReadImage[]
}

/**
 * The images of a layout in the folder, whose names are `name` and `NAME-lab`, with an architecture behind it for one of it. Throws an assertion for a
 * digest, size or type that does not agree.
 */
export function readLayout(folder: string, name: string): ReadLayout {
  const json = (path: string): unknown => JSON.parse(readFileSync(join(folder, path), 'utf8'))
  const used = new Set<string>()
  const pathOf = ({ digest }: Descriptor): string => `blobs/${digest.replace(':', '/')}`
  const blob = (descriptor: Descriptor, type: string): Buffer => {
    const content = readFileSync(join(folder, pathOf(descriptor)))
    used.add(pathOf(descriptor))
    expect([descriptor.mediaType, sha256(content), content.length]).toEqual([
      `application/vnd.oci.image.${type}`,
      descriptor.digest,
      descriptor.size,
    ])
    return content
  }
  const parsed = (descriptor: Descriptor, type: string): unknown => JSON.parse(blob(descriptor, type).toString())
  expect(json('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' })
  const named = (json('index.json') as Index).manifests.map(
    (one) => [one.annotations?.['org.opencontainers.image.ref.name'] ?? '', one] as const,
  )
  const byName = new Map(named)
  const names: string[] = []
  const imagesOf = (program: string): readonly ReadImage[] => {
    const { manifests } = parsed(byName.get(program) as Descriptor, 'index.v1+json') as Index
    names.push(program)
    return manifests.map((descriptor) => {
      names.push(`${program}-${descriptor.platform?.architecture}`)
      expect(byName.get(names.at(-1) ?? '')?.digest).toBe(descriptor.digest)
      const manifest = parsed(descriptor, 'manifest.v1+json') as Manifest
      const config = parsed(manifest.config, 'config.v1+json') as ReadImage['config']
      const contents = manifest.layers.map((layer) => gunzipSync(blob(layer, 'layer.v1.tar+gzip')))
      expect(contents.map(sha256)).toEqual(config.rootfs.diff_ids)
      expect(descriptor.platform).toMatchObject({ architecture: config.architecture, os: config.os })
      return { architecture: config.architecture, config, layers: manifest.layers.map((layer) => join(folder, pathOf(layer))) }
    })
  }
  const images = { relay: imagesOf(name), lab: imagesOf(`${name}-lab`) }
  expect(named.map(([own]) => own)).toEqual(names)
  expect(
    readdirSync(join(folder, 'blobs/sha256'))
      .map((file) => `blobs/sha256/${file}`)
      .toSorted(),
  ).toEqual([...used].toSorted())
  return images
}

/** Unpacks the layers of an image into a folder, and returns its path. */
export function unpackImage({ layers }: ReadImage, to: string): string {
  mkdirSync(to)
  for (const layer of layers) execFileSync('tar', ['--extract', '--preserve-permissions', '--file', layer, '--directory', to])
  return to
}

/** Paths of the files below a folder that have a bit of `mode`. */
export const filesWithMode = (folder: string, mode: number): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => {
    const file = statSync(join(folder, path), { throwIfNoEntry: false })
    return file?.isFile() === true && (file.mode & mode) !== 0
  })
