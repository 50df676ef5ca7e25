/**
 * Order of the test files: those that take longest first, so that the processes end at about the same time. Vitest knows the times of
 * an earlier run; without one it would begin with the largest files, and the slowest are small.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that start processes or run whole worlds, in their order. */
const SLOW = [
  'test/process/nodes',
  'test/process/node-providers',
  'test/process/io-faults',
  'test/docs/newcomers',
  'test/interop/import-routing',
  'test/interop/migration',
  'test/conformance/',
  'test/page/browser',
  'test/process/maildrop-tricks',
  'test/process/node-owners',
  'test/process/',
  'test/interop/',
  'test/page/',
  'test/cli/commands/simulate-run',
  'test/simulation/',
  'test/mutants/',
  'test/simulator/',
  'test/types/',
  'test/stories/',
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
