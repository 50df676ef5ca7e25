/** The configuration of the image, its files, and the options of its build. */
import { describe, expect, test } from 'vitest'
import { parse } from 'smol-toml'
import { ARTEFACTS } from '../../../scripts/package/artefacts.ts'
import { imageConfig, labConfig, USER_ID } from '../../../scripts/package/image/image-config.ts'
import { imageOptions } from '../../../scripts/package/image/options.ts'
import { baseContents, programContents } from '../../../scripts/package/image/root-files.ts'
import { configFrom } from '../../../src/config/load.ts'

const facts = { version: '1.2.0', revision: 'abc', source: 'https://forge.example.org/deferd', at: 1_795_365_161 }

describe('the configuration of the image', () => {
  test('starts the relay as a user without privileges, with a volume and a health check', () => {
    const { config, ...rest } = imageConfig({ architecture: 'arm64', layers: ['a1', 'b2'] }, facts)
    expect(rest).toMatchObject({ architecture: 'arm64', os: 'linux', created: '2026-11-22T16:32:41.000Z' })
    expect(rest.rootfs.diff_ids).toEqual(['sha256:a1', 'sha256:b2'])
    expect(config).toMatchObject({
      User: '65532:65532',
      Entrypoint: ['/usr/bin/deferd'],
      Cmd: ['start'],
      StopSignal: 'SIGTERM',
      Healthcheck: { Test: ['CMD', '/usr/bin/deferd', 'check', '--running'] },
    })
    expect(config).not.toHaveProperty('Volumes')
    expect(config.Env).toContain('DEFERD_REQUIRE_VOLUME=1')
    expect(config.Labels).toMatchObject({
      'org.opencontainers.image.version': '1.2.0',
      'org.opencontainers.image.revision': 'abc',
      'org.opencontainers.image.source': 'https://forge.example.org/deferd',
      'org.opencontainers.image.licenses': 'MIT',
    })
  })

  test('of the lab has the layers of the relay, and neither a volume nor a port', () => {
    const contents = { architecture: 'x64', layers: ['a1', 'b2'] } as const
    const { config, ...rest } = labConfig(contents, facts)
    expect(imageConfig(contents, facts)).toMatchObject(rest)
    expect(config).toMatchObject({ User: '65532:65532', Entrypoint: ['/usr/bin/deferd'], Cmd: ['lab'], Env: ['PATH=/usr/bin'] })
    expect(config).not.toHaveProperty('ExposedPorts')
  })

  test('has no source while the owner has not set one', () => {
    expect(imageConfig({ architecture: 'x64', layers: [] }, { ...facts, source: '' }).config.Labels).not.toHaveProperty(
      'org.opencontainers.image.source',
    )
  })
})

describe('the files of the image', () => {
  const sources = {
    node: 'node',
    notices: '',
    dist: 'dist',
    compiled: [],
    dependencies: new Map(),
    manPages: [],
    pages: [],
    migrations: [],
    read: () => '#!/usr/bin/env node\n',
    copyright: '',
    changelog: '',
    boms: new Map(),
  }

  test('configure the queue at the volume, and a port that others reach', () => {
    const { entries, folders } = programContents(sources, sources.boms)
    const file = entries.find(({ path }) => path === 'etc/deferd/deferd.toml')
    const { config } = configFrom(parse(file?.kind === 'text' ? String(file.text) : ''), 'relay.example')
    expect([config.queue_directory, config.smtpd_listen]).toEqual(['/var/lib/deferd', ['0.0.0.0:2525']])
    expect(folders).toEqual([{ path: 'var/lib/deferd', mode: 0o711, owner: USER_ID }])
  })

  test('name the user', () => {
    const passwd = baseContents([]).entries.find(({ path }) => path === 'etc/passwd')
    expect(passwd).toMatchObject({ text: expect.stringMatching(/^deferd:x:65532:65532:.*:\/var\/lib\/deferd:/m) })
  })
})

test('the image is built for both architectures, unless some are named', () => {
  expect(imageOptions([])).toEqual({ out: 'image', architectures: ['x64', 'arm64'], debian: null })
  expect(imageOptions(['--architecture', 'arm64', '--debian', 'kept'])).toMatchObject({ architectures: ['arm64'], debian: 'kept' })
  expect(() => imageOptions(['--architecture', 'mips'])).toThrow('--architecture mips: expected amd64 or arm64')
})

test('the table of artefacts has no file twice', () => {
  const files = ARTEFACTS.flatMap((artefact) => artefact.files('1.2.0-rc.1'))
  expect(files).toEqual(expect.arrayContaining(['deferd-1.2.0-rc.1.tgz', 'deferd_1.2.0~rc.1_arm64.deb', 'deferd-1.2.0-rc.1-image.tar']))
  expect(new Set(files).size).toBe(files.length)
})
