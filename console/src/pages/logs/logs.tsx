import { PageHeader } from '../../ui/page.tsx'

export default function LogsPage() {
  return <PageHeader title="Logs" />
}
