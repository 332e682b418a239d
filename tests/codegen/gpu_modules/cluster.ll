; Each of two blocks of a cluster sends half of X[64] to both; then each writes all of it, plus what the other counted
target triple = "nvptx64-nvidia-cuda"
@row = internal addrspace(3) global [64 x float] undef, align 128
@bar = internal addrspace(3) global i64 undef, align 8
@count = internal addrspace(3) global i32 undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.barrier.cluster.arrive.aligned()
declare void @llvm.nvvm.barrier.cluster.wait.aligned()
declare ptr addrspace(3) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)
declare void @dev_mbar_init(ptr addrspace(3), i32)
declare void @dev_mbar_expect_tx(ptr addrspace(3), i32)
declare i32 @dev_mbar_try_wait(ptr addrspace(3), i32)
declare void @dev_fence_init()
declare void @dev_tma1d_multicast(ptr addrspace(3), ptr, i32, ptr addrspace(3), i32)
define ptx_kernel void @share(ptr byval([128 x i8]) align 64 %TX, ptr addrspace(1) noalias %Y) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = icmp eq i32 %t, 0
  br i1 %first, label %make, label %made
make:
  call void @dev_mbar_init(ptr addrspace(3) @bar, i32 1)
  call void @dev_fence_init()
  call void @dev_mbar_expect_tx(ptr addrspace(3) @bar, i32 256)
  %c = add i32 %rank, 100
  store i32 %c, ptr addrspace(3) @count
  br label %made
made:
  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
  br i1 %first, label %send, label %wait
send:
  %half = shl i32 %rank, 5
  %to = getelementptr [64 x float], ptr addrspace(3) @row, i32 0, i32 %half
  call void @dev_tma1d_multicast(ptr addrspace(3) %to, ptr %TX, i32 %half, ptr addrspace(3) @bar, i32 3)
  br label %wait
wait:
  %r = call i32 @dev_mbar_try_wait(ptr addrspace(3) @bar, i32 0)
  %no = icmp eq i32 %r, 0
  br i1 %no, label %wait, label %all
all:
  %peer = xor i32 %rank, 1
  %far = call ptr addrspace(3) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @count, i32 %peer)
  %n = load i32, ptr addrspace(3) %far
  %f = sitofp i32 %n to float
  %p = getelementptr [64 x float], ptr addrspace(3) @row, i32 0, i32 %t
  %x = load float, ptr addrspace(3) %p
  %y = fadd float %x, %f
  %o0 = shl i32 %block, 6
  %o = add i32 %o0, %t
  %q = getelementptr float, ptr addrspace(1) %Y, i32 %o
  store float %y, ptr addrspace(1) %q
  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @share, !"kernel", i32 1, !"maxntidx", i32 64}
