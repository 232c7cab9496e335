import { PageHeader } from '../../ui/page.tsx'

export default function AgentsPage() {
  return <PageHeader title="Agents" />
}
