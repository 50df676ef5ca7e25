import { attentionOf, type AttentionItem } from '../../src/queue/attention.ts'
import type { World } from '../../src/testkit/world.ts'

/** Conditions that need an operator's attention, as Now and the reports by mail name them. */
export const attentionIn = async ({ relay: { status }, reader }: Pick<World, 'relay' | 'reader'>): Promise<readonly AttentionItem[]> =>
  attentionOf(await status.attention(reader), await status.brief())
