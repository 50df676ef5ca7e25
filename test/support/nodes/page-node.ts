/** A node of a cluster with its page, where a person has logged in. */
import { join } from 'node:path'
import type { ClusterNode, NodeCluster } from '../node-cluster.ts'
import { PageClient } from '../page-client.ts'
import { portBelowEphemeral } from '../ports.ts'

export interface PageNode {
  readonly node: ClusterNode
  readonly page: PageClient
}

export async function startWithPage(cluster: NodeCluster, name: string): Promise<PageNode> {
  const port = await portBelowEphemeral()
  const node = await cluster.start(name, { admin_listen: `127.0.0.1:${port}` })
  return { node, page: await PageClient.logIn(`http://127.0.0.1:${port}/`, join(node.folder.path, 'queue')) }
}
