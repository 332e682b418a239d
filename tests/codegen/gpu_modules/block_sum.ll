; Y[block] = sum of X[block*n .. block*n + n - 1]: each thread adds up its own, a warp by shuffles, the warps by memory
target triple = "nvptx64-nvidia-cuda"
@warps = internal addrspace(3) global [32 x float] undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
define internal float @warp_sum(float %x) {
  %a = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x, i32 16, i32 31)
  %x1 = fadd float %x, %a
  %b = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x1, i32 8, i32 31)
  %x2 = fadd float %x1, %b
  %c = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x2, i32 4, i32 31)
  %x3 = fadd float %x2, %c
  %d = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x3, i32 2, i32 31)
  %x4 = fadd float %x3, %d
  %e = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x4, i32 1, i32 31)
  %x5 = fadd float %x4, %e
  ret float %x5
}
define ptx_kernel void @block_sum(ptr addrspace(1) noalias readonly %X, ptr addrspace(1) noalias %Y, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %from = mul i32 %block, %n
  br label %test
test:
  %i = phi i32 [ %t, %entry ], [ %i1, %add ]
  %sum = phi float [ 0.0, %entry ], [ %sum1, %add ]
  %in = icmp slt i32 %i, %n
  br i1 %in, label %add, label %own
add:
  %at = add i32 %from, %i
  %p = getelementptr float, ptr addrspace(1) %X, i32 %at
  %x = load float, ptr addrspace(1) %p, align 4
  %sum1 = fadd float %sum, %x
  %i1 = add i32 %i, %threads
  br label %test
own:
  %w = call float @warp_sum(float %sum)
  %lane = and i32 %t, 31
  %warp = lshr i32 %t, 5
  %leads = icmp eq i32 %lane, 0
  br i1 %leads, label %put, label %meet
put:
  %s = getelementptr [32 x float], ptr addrspace(3) @warps, i32 0, i32 %warp
  store float %w, ptr addrspace(3) %s, align 4
  br label %meet
meet:
  call void @llvm.nvvm.barrier0()
  %first = icmp eq i32 %warp, 0
  br i1 %first, label %join, label %done
join:
  %count = lshr i32 %threads, 5
  %there = icmp slt i32 %lane, %count
  %safe = select i1 %there, i32 %lane, i32 0
  %q = getelementptr [32 x float], ptr addrspace(3) @warps, i32 0, i32 %safe
  %v = load float, ptr addrspace(3) %q, align 4
  %part = select i1 %there, float %v, float 0.0
  %all = call float @warp_sum(float %part)
  br i1 %leads, label %store, label %done
store:
  %y = getelementptr float, ptr addrspace(1) %Y, i32 %block
  store float %all, ptr addrspace(1) %y, align 4
  br label %done
done:
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @block_sum, !"kernel", i32 1, !"maxntidx", i32 256}
