/** The requirement of a volume for the queue folder of a container. */
import { expect, test } from 'vitest'
import { volumeProblem, type MountedFiles } from '../../../src/store/folder/volume.ts'

const EXT4 = 0xef53
const TMPFS = 0x01021994

/** A system with the file systems of mount points: `/` and others, each with a number and a type. */
const mounted = (
  points: Readonly<Record<string, readonly [device: number, type: number]>>,
  absent: readonly string[] = [],
): MountedFiles => {
  const of = (path: string) => {
    const point = Object.keys(points)
      .toSorted((a, b) => b.length - a.length)
      .find((one) => path === one || one === '/' || path.startsWith(`${one}/`))
    return points[point ?? '/'] ?? [0, 0]
  }
  return { device: (path) => (absent.includes(path) ? null : of(path)[0]), type: (path) => of(path)[1] }
}

test('a volume is accepted, and a folder that is to be made in it', () => {
  const files = mounted({ '/': [1, EXT4], '/var/lib/deferd': [2, EXT4] }, ['/var/lib/deferd/queue'])
  expect(volumeProblem('/var/lib/deferd', files)).toBeNull()
  expect(volumeProblem('/var/lib/deferd/queue', files)).toBeNull()
})

test('the files of the container are refused, and memory, each with the remedy', () => {
  const own = mounted({ '/': [1, EXT4] }, ['/var/lib/deferd'])
  expect(volumeProblem('/var/lib/deferd', own)).toBe(
    'the queue directory /var/lib/deferd is not a volume: mail would be lost with the container; mount a volume (-v mail:/var/lib/deferd), or set DEFERD_REQUIRE_VOLUME=0',
  )
  const memory = mounted({ '/': [1, EXT4], '/var/lib/deferd': [2, TMPFS] })
  expect(volumeProblem('/var/lib/deferd', memory)).toContain('/var/lib/deferd is in memory: mail would be lost')
})

test('the system answers for its own files', () => {
  expect(volumeProblem('/')).toContain('is not a volume')
  expect(volumeProblem('/proc/no-such-folder')).toBeNull()
})
