/**
 * Order of the test files: those that take longest first, so that the processes end at about the same time. Vitest knows the times of
 * an earlier run; without one it would begin with the largest files, and the slowest are small.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that start processes or run whole worlds, in their order. */
const SLOW = [
  'test/process/nodes',
  'test/docs/newcomers',
  'test/conformance/',
  'test/process/maildrop-tricks',
  'test/process/io-faults',
  'test/process/node-owners',
  'test/process/',
  'test/interop/',
  'test/simulation/',
  'test/mutants/',
  'test/simulator/',
]

function rank({ moduleId }: TestSpecification): number {
  const place = SLOW.findIndex((path) => moduleId.includes(path))
  return place < 0 ? SLOW.length : place
}

export class SlowFilesFirst extends BaseSequencer {
  override async sort(given: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line no-array-sort -- the files are sorted by the base class
    const files = await super.sort(given)
    return files.toSorted((a, b) => rank(a) - rank(b))
  }
}
